"""Which processes and threads of two runs are the same, although no number of theirs is.

The native part has replaced each number in a thread's name and a command line by `*`. Threads with
one such pattern are a group. Commands are matched by their pattern, then by what the interpreter
runs, and if one is left on each side these two are each other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ungil.comparison.measures import Group, Process, Stretch
from ungil.comparison.metrics import Sums
from ungil.comparison.runs import Run


@dataclass(frozen=True)
class Threads:
    """A group of threads at one GIL of one command; keys that are None stand for all."""

    command: str | None = None
    gil: int | None = None
    group: str | None = None
    others: bool = False
    """Whether these are the threads that are not listed one by one."""


ALL = Threads()


@dataclass(frozen=True)
class Commands:
    """How the commands of both sides are called in common, by their patterns."""

    before: dict[str, str]
    after: dict[str, str]
    told_apart: list[tuple[str, str]]
    """Commands that are taken for one although their lines differ."""

    @property
    def all(self) -> list[str]:
        """Every name, those of the first side first."""
        return list(dict.fromkeys([*self.before.values(), *self.after.values()]))


def match_commands(before: Sequence[Run], after: Sequence[Run]) -> Commands:
    """Which commands of the two sides are the same."""
    mine, theirs = _patterns(before), _patterns(after)
    pairs = {pattern: pattern for pattern in mine if pattern in theirs}
    different: list[tuple[str, str]] = []
    for alike in (_without_interpreter, _any):
        left = [pattern for pattern in mine if pattern not in pairs.values()]
        right = [pattern for pattern in theirs if pattern not in pairs]
        for pattern in right:
            same = [other for other in left if alike(other) == alike(pattern)]
            rivals = [other for other in right if alike(other) == alike(pattern)]
            if len(same) == 1 and len(rivals) == 1:
                pairs[pattern] = same[0]
                different.append((same[0], pattern))
    return Commands(
        {pattern: pattern for pattern in mine},
        {pattern: pairs.get(pattern, pattern) for pattern in theirs},
        different,
    )


def _patterns(runs: Sequence[Run]) -> list[str]:
    """The commands with a GIL, in all runs; those that waited and held most first."""
    weight: dict[str, float] = {}
    for run in runs:
        for process in run.processes:
            if process["gils"]:
                before = weight.get(process["pattern"], 0.0)
                weight[process["pattern"]] = before + _weight(process)
    return sorted(weight, key=lambda pattern: -weight[pattern])


def _weight(process: Process) -> float:
    groups = (group for gil in process["gils"] for group in gil["groups"])
    return sum(group["waited_s"] + group["held_s"] for group in groups)


def _any(_pattern: str) -> str:
    return ""


def _without_interpreter(pattern: str) -> str:
    return pattern.partition(" ")[2]


def all_threads(runs: Iterable[Run], commands: dict[str, str]) -> dict[Threads, list[Group]]:
    """The groups of threads in these runs, with what each run has of it."""
    found: dict[Threads, list[Group]] = {}
    for run in runs:
        for process in run.processes:
            for gil in process["gils"]:
                for group in gil["groups"]:
                    key = _key(commands[process["pattern"]], gil["gil"], group)
                    found.setdefault(key, []).append(group)
    return found


def _key(command: str, gil: int, group: Group) -> Threads:
    return Threads(command, gil, group["pattern"], others=group["pattern"] is None)


def sums(stretch: Stretch, whole_s: float, which: Threads, commands: dict[str, str]) -> Sums:
    """What `which` threads did in a stretch of a run."""
    counted = Sums(stretch["end_s"] - stretch["start_s"], whole_s)
    for process in stretch["processes"]:
        # A part may have a process that has no GIL in the whole.
        command = commands.get(process["pattern"])
        if which.command not in (None, command):
            continue
        for gil in process["gils"]:
            if which.gil not in (None, gil["gil"]):
                continue
            if which.group is None and not which.others:
                counted.add(gil)
            else:
                counted.add(gil, [it for it in gil["groups"] if it["pattern"] == which.group])
    return counted
