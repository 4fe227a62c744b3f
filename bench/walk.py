"""A newcomer's walk: trace a program, do what the first advice says, trace again, compare.

    python bench/walk.py [--rounds N] [--python PATH] [--json FILE] [--quick]

What is compared is how long a thread waits for the GIL when it comes back from a blocking call, on
average, of the threads that the finding is about: it does not depend on how many calls there are,
and a server that answers sooner is asked more often. Gained is what that mean falls by. The advice
is applied by its own command, word by word, with `ungil trace` in the place of `ungil run`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from surroundings import spread

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = {
    "a web server beside a thread that computes": "convoy_server.py",
    "FastAPI with a computing executor": "scoring_fastapi.py",
}
WITHIN = 0.25


@dataclass(frozen=True)
class Walk:
    """From a trace to a trace."""

    name: str = "walk"


WALK = Walk()


def main() -> None:
    """Walks and prints."""
    options = parse(parser(__doc__, rounds=3))
    report(options, ["ungil", "fastapi", "uvicorn", "waitress"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each program."""
    for setting, program in PROGRAMS.items():

        def measure(_walk: Walk, program: str = program) -> Measured:
            return _walked([options.python, str(EXAMPLES / program)])

        runs = interleave(setting, [WALK], measure, options)
        yield runs, _table(runs)


def _walked(words: list[str]) -> Measured:
    """What was predicted, and what came of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        before, after = f"{folder}/before.pftrace", f"{folder}/after.pftrace"
        _ungil("trace", "--quiet", "-o", before, "--", *words)
        first = json.loads(_ungil("advise", before, "--json"))["advice"][0]
        # Threads have other ids when the program runs again.
        named = _names(before, set(first["subject"]["threads"]))
        ungil, run, *rest = first["action"]["command"]
        assert (ungil, run) == ("ungil", "run"), first["action"]
        _ungil("trace", "--quiet", "-o", after, *rest)
        waited = [_waited_ms(path, named) for path in (before, after)]
    gain = first["gain"]
    assert gain["measure"] == "wait-after-blocking-call", gain
    return {
        "advice": " ".join(rest[: rest.index("--")]),
        "told_before_ms": gain["before"],
        "predicted_ms": gain["after"],
        "low_ms": gain["low"],
        "high_ms": gain["high"],
        "before_ms": waited[0],
        "after_ms": waited[1],
        "took_s": time.monotonic() - began,
    }


def _ungil(*words: str) -> str:
    """What a command of ungil prints; what the program prints goes nowhere."""
    command = [sys.executable, "-m", "ungil", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _threads(path: str) -> list[dict[str, Any]]:
    told = json.loads(_ungil("report", path, "--json", "--no-advice"))
    (gil,) = told["processes"][0]["gils"]
    return gil["threads"]


def _names(path: str, tids: set[int]) -> set[str]:
    return {thread["name"] for thread in _threads(path) if thread["tid"] in tids}


def _waited_ms(path: str, names: set[str]) -> float:
    """How long these threads waited when they came back from a blocking call, on average."""
    told = [thread["blocking"] for thread in _threads(path) if thread["name"] in names]
    calls = sum(it["calls"] for it in told)
    return 1e3 * sum(it["waited_s"] for it in told) / max(calls, 1)


def _gained(measured: Measured) -> float:
    """By what the mean wait really fell, to what was predicted."""
    predicted = measured["told_before_ms"] - measured["predicted_ms"]
    return (measured["before_ms"] - measured["after_ms"]) / predicted


def _table(runs: Runs) -> Table:
    """The walk, in the median of the rounds."""
    heads = (
        "first advice",
        "before ms",
        "predicted ms",
        "after ms",
        "gained to predicted",
        "took s",
    )
    table = columns("", runs.setting, *heads)
    each = [round_[WALK.name] for round_ in runs.rounds]

    def median(key: str) -> str:
        return f"{statistics.median(it[key] for it in each):.3f}"

    low, high = median("low_ms"), median("high_ms")
    table.add_row(
        "",
        ", ".join(sorted({it["advice"] for it in each})),
        median("before_ms"),
        f"{median('predicted_ms')} ({low} to {high})",
        median("after_ms"),
        spread([_gained(it) for it in each]),
        median("took_s"),
    )
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That a prediction comes true."""
    for runs in all_runs:
        gained = statistics.median(_gained(it[WALK.name]) for it in runs.rounds)
        claim = f"{runs.setting}: the gain is within {WITHIN:.0%} of the predicted one"
        yield Target(claim, abs(gained - 1) <= WITHIN, f"{gained:.2f} of it")


if __name__ == "__main__":
    main()
