"""A newcomer's walk: trace a program, do what the first advice says, trace again, compare.

    python bench/walk.py [--rounds N] [--python PATH] [--json FILE] [--quick]

What is compared is how long a thread waits for the GIL when it comes back from a blocking call, on
average, of the threads that the finding is about: it does not depend on how many calls there are,
and a server that answers sooner is asked more often. Gained is what that mean falls by. The advice
is applied by its own command, word by word, with `ungil trace` in the place of `ungil run`. Where
it is lines of code for the beginning of a program, they are run before it; where a function goes to
a process, the program has an option that does it.

Where it may, the script runs the programs at nice -20, so that others of a shared machine take
little of what is measured. A trace whose first advice is about the kernel is taken again.
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
from simulate import first as go_first
from surroundings import spread

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = {
    "a web server beside a thread that computes": "convoy_server.py",
    "FastAPI with a computing executor": "scoring_fastapi.py",
}
WITHIN = 0.25
TRIES = 5
# How many calls a gain is told for.
CALLS = {"wait-after-blocking-call": 1, "wait-after-thousand-blocking-calls": 1000}
# Options of the programs that do what the advised lines of code say.
CODE = {"to-a-process": ["--processes"]}
# Advice whose lines of code belong to the beginning of a program.
FIRST = {"switch-interval"}
RUN = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


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
        advised = next(filter(_can_be_applied, (_advised(before, words) for _ in range(TRIES))))
        first = advised[0]
        # Those that suffer; they have other ids when the program runs again.
        victims = next(it for it in advised if it["kind"] == "policy")["subject"]["threads"]
        named = _names(before, set(victims))
        _trace(after, _applied(first, words))
        waited = [_waited_ms(path, named) for path in (before, after)]
    gain = first["gain"]
    calls = CALLS[gain["measure"]]
    return {
        "advice": first["kind"],
        "told_before_ms": gain["before"] / calls,
        "predicted_ms": gain["after"] / calls,
        "low_ms": gain["low"] / calls,
        "high_ms": gain["high"] / calls,
        "before_ms": waited[0],
        "after_ms": waited[1],
        "took_s": time.monotonic() - began,
    }


def _advised(path: str, words: list[str]) -> list[dict[str, Any]]:
    """All advice about a new trace, be it rejected."""
    _trace(path, ["--", *words])
    told = json.loads(_ungil("advise", path, "--json"))
    return told["advice"] + told["rejected"]


def _can_be_applied(advised: list[dict[str, Any]]) -> bool:
    """Whether the first advice can be applied here."""
    command = advised[0]["action"]["command"]
    if (command and command[:2] == ["ungil", "run"]) or advised[0]["kind"] in {*CODE, *FIRST}:
        return True
    print(f"taken again, because the first advice was: {advised[0]['text']}", file=sys.stderr)
    return False


def _applied(advice: dict[str, Any], words: list[str]) -> list[str]:
    """The words after `ungil trace` that run the program as the advice says."""
    python, *program = words
    if advice["kind"] in CODE:
        return ["--", *words, *CODE[advice["kind"]]]
    if advice["kind"] in FIRST:
        return ["--", python, "-c", f"{advice['action']['code']}\n{RUN}", *program]
    return advice["action"]["command"][2:]


def _trace(path: str, words: list[str]) -> None:
    """The program of these words, which goes before others."""
    options = ["--quiet", "--force", "--no-children", "-o", path]
    command = [sys.executable, "-m", "ungil", "trace", *options, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=go_first)


def _ungil(*words: str) -> str:
    """What a command of ungil prints."""
    command = [sys.executable, "-m", "ungil", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _recorded(path: str) -> list[dict[str, Any]]:
    """The threads of a trace, as the simulator says that they were recorded."""
    told = json.loads(_ungil("simulate", path, "--policy", "fair", "--runs", "1", "--json"))
    return told["predictions"][0]["recorded"]["threads"]


def _names(path: str, tids: set[int]) -> set[str]:
    return {thread["name"] for thread in _recorded(path) if thread["tid"] in tids}


def _waited_ms(path: str, names: set[str]) -> float:
    """How long these threads waited when they came back from a blocking call, on average."""
    told = [thread["returns"] for thread in _recorded(path) if thread["name"] in names]
    calls = sum(it["count"] for it in told)
    return sum(it["mean_us"] * it["count"] for it in told) / max(calls, 1) / 1e3


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
