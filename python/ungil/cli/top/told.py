"""What `ungil top --once --json` prints; docs/live.md describes the keys."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ungil.cli.live.moment import Frame
from ungil.cli.top.figures import Figures


def as_data(shown: Figures) -> dict[str, Any]:
    """One process, for programs."""
    holder = shown.holder
    return {
        "pid": shown.pid,
        "command": list(shown.command),
        "python": shown.python or None,
        "interval_s": shown.interval_s,
        "policy": shown.policy,
        "quantum_s": shown.quantum_s,
        "held": shown.held,
        "contended": shown.contended,
        "waited": shown.waited,
        "handoffs_per_s": shown.handoffs,
        "lost_events": shown.lost_events,
        "holder": None
        if holder is None
        else {
            "tid": holder.tid,
            "name": holder.name,
            "gil": holder.gil,
            "held_s": holder.for_s,
            "at_least": holder.at_least,
            "stack": [asdict(it) for it in holder.stack],
        },
        "threads": [
            {
                "tid": it.tid,
                "name": it.name,
                "main": it.main,
                "state": it.state,
                "for_s": it.for_s,
                "at_least": it.at_least,
                "held": it.held,
                "waited": it.waited,
                "free_releases_per_s": it.freely,
                "forced_releases_per_s": it.forced,
                "worst_wait_s": it.worst_wait_s,
                "cpu": it.cpu,
                "line": _line(it.line),
            }
            for it in shown.rows
        ],
        "blame": [
            {
                "culprit": it.tid,
                "culprit_name": it.name,
                "waited": it.waited,
                "victims": [{"name": name, "waited": waited} for name, waited in it.victims],
                "line": _line(it.line),
            }
            for it in shown.blamed
        ],
    }


def _line(frame: Frame | None) -> dict[str, Any] | None:
    return None if frame is None else asdict(frame)
