"""What is said of a phase of a test, as data and in sentences."""

from __future__ import annotations

from typing import Any

from ungil.limits import Judged

HOLDS_TOLD = 20
"""As many holds of a phase are told to the summary, at most."""
WHERE = {"setup": "in the setup, ", "call": "", "teardown": "in the teardown, "}
SENTENCES = 5


def told(judged: Judged, broken: list[dict[str, Any]]) -> dict[str, Any]:
    """What a test report takes along: nothing but numbers, texts, lists and dicts."""
    holds = sorted(judged.holds, key=lambda hold: -hold.own_ms)[:HOLDS_TOLD]
    return {
        "waited_ms": judged.waited_ms,
        "own_ms": judged.own_ms,
        "holds": [
            {"own_ms": it.own_ms, "name": it.name, "line": it.line, "known": bool(it.stack)}
            for it in holds
        ],
        "broken": [it["sentence"] for it in broken],
    }


def broken_sentences(when: str, broken: list[dict[str, Any]]) -> str:
    """What broke the limits of a phase, a sentence a line."""
    lines = [f"{WHERE[when]}{it['sentence']}" for it in broken[:SENTENCES]]
    if len(broken) > SENTENCES:
        lines.append(f"and {len(broken) - SENTENCES} more")
    return "\n".join(lines)
