"""The comparison itself: every row of it with its numbers and its verdict, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Literal

from ungil.comparison.conditions import warnings
from ungil.comparison.elsewhere import changed
from ungil.comparison.findings import ComparedFinding, compare_findings
from ungil.comparison.little import (
    Little,
    as_long_for_each,
    as_neither,
    by_call,
    more_calls,
    neither,
    waited_little,
)
from ungil.comparison.matching import ALL, Commands, Threads, all_threads, match_commands, sums
from ungil.comparison.measures import Group
from ungil.comparison.metrics import METRICS, WAITED, Metric
from ungil.comparison.noise import Judged, judge
from ungil.comparison.runs import Run
from ungil.comparison.work import differs

Status = Literal["both", "gone", "new"]


@dataclass(frozen=True)
class Row:
    """Some threads on both sides."""

    which: Threads
    name: str
    """What they are called: a name, or a pattern of names."""
    threads: tuple[float, float]
    """How many there were in a run of each side, on average."""
    status: Status
    metrics: dict[str, Judged]

    @property
    def waited(self) -> Judged:
        """What they waited."""
        return self.metrics[WAITED.key]

    @property
    def weight(self) -> float:
        """How much they matter: what they waited and held on both sides."""
        both = (self.waited, self.metrics["held"])
        return sum((it.before_median or 0.0) + (it.after_median or 0.0) for it in both)


@dataclass(frozen=True)
class Comparison:
    """All that two sides of runs say."""

    before: list[Run]
    after: list[Run]
    total: Row
    commands: list[Row]
    """Each command, if there are several; those that waited and held most first."""
    gils: list[Row]
    """Each GIL of a command, if one has several."""
    groups: list[Row]
    """Each group of threads, likewise."""
    findings: list[ComparedFinding]
    warnings: list[str]
    """Why the sides may not be comparable, each a sentence without a final dot."""
    little: Little | None = None
    """How little threads waited on both sides, if it was next to nothing."""
    elsewhere: list[str] = field(default_factory=list[str])
    """What changed that is not the GIL, each a sentence without a final dot."""

    @property
    def is_weak(self) -> bool:
        """Whether the noise is only known from parts of one run a side."""
        return len(self.before) == len(self.after) == 1

    @cached_property
    def is_worse(self) -> bool:
        """Whether threads wait more than the noise in all, or because of one finding."""
        found = (finding.cost.verdict for finding in self.findings)
        return self.total.waited.verdict == "worse" or "worse" in found


def compare(before: list[Run], after: list[Run]) -> Comparison:
    """Compares two sides, each of one run at least."""
    little = waited_little(before, after)
    sides = Sides(before, after, match_commands(before, after), little is not None)
    total = sides.row(ALL, "all threads", None)
    groups = sides.groups()
    names = sides.commands.all
    locks = list(dict.fromkeys(Threads(row.which.command, row.which.gil) for row in groups))
    several = len(locks) > len({lock.command for lock in locks})
    return Comparison(
        before,
        after,
        total,
        _sorted([sides.row(Threads(name), name, None) for name in names]) if len(names) > 1 else [],
        [sides.row(lock, f"GIL {lock.gil}", None) for lock in locks] if several else [],
        _sorted(groups),
        [
            _by_call(finding, total)
            for finding in compare_findings(before, after, sides.commands, sides.parts(ALL, WAITED))
        ],
        [*warnings(before, after, sides.commands), *differs(total.metrics)],
        little,
        changed(before, after, little=little is not None),
    )


def _by_call(finding: ComparedFinding, total: Row) -> ComparedFinding:
    """The same, neither better nor worse if it costs no more for each blocking call."""
    more = more_calls(total.metrics)
    if more is None or finding.status != "both" or not as_long_for_each(finding.cost, more):
        return finding
    return replace(finding, cost=as_neither(finding.cost))


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row.weight)


@dataclass(frozen=True)
class Sides:
    """Both sides, and which of their commands are the same."""

    before: list[Run]
    after: list[Run]
    commands: Commands
    waited_little: bool = False
    """Whether threads waited next to nothing on both."""

    def groups(self) -> list[Row]:
        """A row for each group of threads on either side."""
        mine = all_threads(self.before, self.commands.before)
        theirs = all_threads(self.after, self.commands.after)
        return [
            self.row(
                which, _name(which, mine.get(which, []) + theirs.get(which, [])), (mine, theirs)
            )
            for which in dict.fromkeys([*mine, *theirs])
        ]

    def row(
        self,
        which: Threads,
        name: str,
        found: tuple[dict[Threads, list[Group]], dict[Threads, list[Group]]] | None,
    ) -> Row:
        """A row of `which` threads; `found` says where there are any, if that is not everywhere."""
        of_gils = which.group is None and not which.others
        metrics = {
            metric.key: judge(
                metric,
                self.values(self.before, self.commands.before, which, metric),
                self.values(self.after, self.commands.after, which, metric),
                self.parts(which, metric),
            )
            for metric in METRICS
            if of_gils or not metric.of_gils
        }
        threads = (
            self.threads(self.before, self.commands.before, which),
            self.threads(self.after, self.commands.after, which),
        )
        status: Status = "both"
        if found is not None and which not in found[1]:
            status = "gone"
        elif found is not None and which not in found[0]:
            status = "new"
        metrics = neither(metrics) if self.waited_little else by_call(metrics)
        return Row(which, name, threads, status, metrics)

    def parts(
        self, which: Threads, metric: Metric
    ) -> tuple[list[float | None], list[float | None]] | None:
        """A number of each part of the only run of each side; None where there are several."""
        if len(self.before) > 1 or len(self.after) > 1:
            return None
        sides = ((self.before[0], self.commands.before), (self.after[0], self.commands.after))
        mine, theirs = (
            [metric.of(sums(part, 0.0, which, commands)) for part in run.parts]
            for run, commands in sides
        )
        return mine, theirs

    def values(
        self, runs: Sequence[Run], commands: dict[str, str], which: Threads, metric: Metric
    ) -> list[float | None]:
        """A number by run. The start-up is in no part of a run, and parts are of equal length."""
        values: list[float | None] = []
        for run in runs:
            parts = [metric.of(sums(part, 0.0, which, commands)) for part in run.parts]
            known = [value for value in parts if value is not None]
            if metric.in_startup and known:
                values.append(fmean(known))
            else:
                values.append(metric.of(sums(run.whole, run.duration_s, which, commands)))
        return values

    def threads(self, runs: Sequence[Run], commands: dict[str, str], which: Threads) -> float:
        """How many there were in a run, on average."""
        counts = [sums(run.whole, run.duration_s, which, commands).threads for run in runs]
        return sum(counts) / len(counts)


def _name(which: Threads, groups: Sequence[Group]) -> str:
    """The name that all of them have, else the pattern."""
    if which.group is None:
        return "threads that are not listed"
    names = {group["name"] for group in groups}
    (name,) = names if len(names) == 1 else (None,)
    return name if name is not None else which.group
