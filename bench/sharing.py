"""The ways to share objects that are compared, and how the programs that use them are run."""

import json
import os
import statistics
import subprocess
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from interleaving import BROKE, Measured, Runs, Target, Variant
from peers import FOLDER
from surroundings import spread

# Against programs that hang, as some peers do; none takes a tenth of it.
PATIENCE_S = 600
# Their versions are printed.
PACKAGES = ["ungil", "UltraDict", "shared-memory-dict", "lmdb"]


@dataclass(frozen=True)
class Way:
    """A way to share an object."""

    name: str
    """As bench/programs/shared_subjects.py has it."""


UNGIL = Way("ungil")
MANAGER = Way("Manager")
ULTRADICT = Way("UltraDict")
SMD = Way("shared-memory-dict")
LMDB = Way("lmdb")


def run(python: str, program: str, *arguments: object, patience_s: float = PATIENCE_S) -> Measured:
    """What a program of bench/programs says in its last line.

    If it fails, or has not ended after `patience_s`, why: a peer that breaks is shown as such, and
    does not end the measurements.
    """
    words = [python, str(FOLDER / f"{program}.py"), *map(str, arguments)]
    # As of an installed package, bytecode is there, but perhaps for the first run. Each process
    # would else compile ungil's modules, and those that it forks would pay for the memory.
    environment = {key: it for key, it in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    try:
        ended = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience_s,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {BROKE: f"no end after {patience_s} s"}
    lines = ended.stdout.splitlines()
    if ended.returncode == 0 and lines:
        return json.loads(lines[-1])
    said = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
    # It has to fit into a table.
    return {BROKE: textwrap.shorten(said[-1], 100)}


def broke(runs: Runs, way: Variant) -> str | None:
    """Why there are no figures of `way`, if there are none."""
    for round_ in runs.rounds:
        if BROKE in round_[way.name]:
            return round_[way.name][BROKE]
    return None


def working(runs: Runs, ways: Sequence[Way]) -> list[Way]:
    """Those that have figures."""
    return [way for way in ways if broke(runs, way) is None]


def at_most(claim: str, limit: float, seen: Sequence[float]) -> Target:
    """A target for the median of what was seen."""
    return Target(f"{claim} at most {limit:g}", statistics.median(seen) <= limit, spread(seen))


def times_faster(runs: Runs, peer: Way, limit: float, rate: Callable[[Measured], float]) -> Target:
    """A target for ungil's rate as a multiple of a peer's in the same round."""
    claim = f"{runs.setting}: at least {limit:g} times {peer.name}'s rate"
    for way in (UNGIL, peer):
        if (why := broke(runs, way)) is not None:
            return Target(claim, False, f"{way.name} cannot be measured: {why}")
    seen = runs.ratios(UNGIL, peer, rate)
    return Target(claim, statistics.median(seen) >= limit, spread(seen))
