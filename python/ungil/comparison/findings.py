"""Which findings are gone, new, or cost another time than before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from ungil.comparison.matching import Commands
from ungil.comparison.measures import Finding
from ungil.comparison.metrics import Metric
from ungil.comparison.noise import TOLD_APART, Judged, judge
from ungil.comparison.runs import Run

Status = Literal["both", "gone", "new"]

COST = Metric("cost", "cost", "s/s", "lower", 0.002, 0.05, lambda _sums: None)


@dataclass(frozen=True)
class Subject:
    """What a finding is about, in words that another run has, too."""

    kind: str
    command: str | None
    gil: int | None
    thread: str | None
    """The pattern of the name of the worst thread; None where all rivals are meant."""
    function: str | None
    """The code that kept the GIL, without its line."""


@dataclass(frozen=True)
class ComparedFinding:
    """A finding on both sides."""

    subject: Subject
    found: tuple[int, int]
    """In how many runs of each side."""
    text: str
    """Its sentence, of the latest run that has it."""
    cost: Judged
    """The wait time that it explains."""
    status: Status
    now: Subject | None = None
    """What it is about after, where that is another thread or another command."""


@dataclass(frozen=True)
class Found:
    """What one side has of a subject."""

    costs: list[float | None]
    """What they cost in each second of each run."""
    culprits: frozenset[str]
    """The patterns of the names of those that held most, in any run."""


def compare_findings(
    before: Sequence[Run],
    after: Sequence[Run],
    commands: Commands,
    parts: tuple[list[float | None], list[float | None]] | None,
) -> list[ComparedFinding]:
    """All findings of both sides, the costliest first.

    What a finding costs is a part of what is waited in all. So with one run a side `parts`, which
    is what was waited in each part of it, shows the noise.
    """
    mine = _by_subject(before, commands.before)
    theirs = _by_subject(after, commands.after)
    now: dict[Subject, Subject] = {}
    for new, gone in renamed(mine, theirs):
        theirs[gone] = theirs.pop(new)
    for new, gone in moved(_found(before, mine), _found(after, theirs)):
        theirs[gone] = theirs.pop(new)
        now[gone] = new
    compared: list[ComparedFinding] = []
    for subject in dict.fromkeys([*mine, *theirs]):
        of_before, of_after = mine.get(subject, {}), theirs.get(subject, {})
        cost = judge(COST, _costs(before, of_before), _costs(after, of_after), parts)
        newest = of_after or of_before
        status: Status = "both"
        if not of_after and len(of_before) * 2 > len(before):
            status = "gone"
        elif not of_before and len(of_after) * 2 > len(after):
            status = "new"
        text = newest[max(newest)][-1]["text"]
        found = (len(of_before), len(of_after))
        one = ComparedFinding(subject, found, text, cost, status, now.get(subject))
        compared.append(one)
    return sorted(
        compared, key=lambda it: -max(it.cost.before_median or 0.0, it.cost.after_median or 0.0)
    )


def renamed(
    mine: Collection[Subject], theirs: Collection[Subject]
) -> list[tuple[Subject, Subject]]:
    """New subjects that are those that are gone, in a file with another name.

    A command is matched with one of another name, too. One that two others may be is none of them.
    """
    gone = [it for it in mine if it not in theirs and it.function is not None]
    new = [it for it in theirs if it not in mine and it.function is not None]
    pairs: list[tuple[Subject, Subject]] = []
    for subject in new:
        same = [it for it in gone if _without_file(it) == _without_file(subject)]
        rivals = [it for it in new if _without_file(it) == _without_file(subject)]
        if len(same) == len(rivals) == 1:
            pairs.append((subject, same[0]))
    return pairs


def moved(
    mine: Mapping[Subject, Found], theirs: Mapping[Subject, Found]
) -> list[tuple[Subject, Subject]]:
    """New subjects that are those that are gone, for threads or a command of another name.

    They are of one kind, and the same threads held meanwhile, in the same function if that is
    known. Those of different commands also cost about as much. One that two others may be is none
    of them.
    """
    gone = [it for it in mine if it not in theirs]
    new = [it for it in theirs if it not in mine]
    alike = [
        (here, there)
        for here in new
        for there in gone
        if _is_alike(here, there)
        and (here.command == there.command or _is_as_large(mine[there], theirs[here]))
        and _have_a_common(mine[there].culprits, theirs[here].culprits)
    ]
    here, there = Counter(it for it, _ in alike), Counter(it for _, it in alike)
    return [pair for pair in alike if here[pair[0]] == there[pair[1]] == 1]


def _is_alike(one: Subject, other: Subject) -> bool:
    mine, theirs = _without_file(one), _without_file(other)
    return (mine.kind, mine.gil, mine.function) == (theirs.kind, theirs.gil, theirs.function)


def _is_as_large(one: Found, other: Found) -> bool:
    small, large = sorted(median(it or 0.0 for it in found.costs) for found in (one, other))
    return small > 0.0 and large <= TOLD_APART * small


def _have_a_common(mine: Collection[str], theirs: Collection[str]) -> bool:
    return any(_are_one(one, other) for one in mine for other in theirs)


def _are_one(one: str, other: str) -> bool:
    """Since Python 3.10 a thread without a name of its own is called after its function, too."""
    short, long = sorted((one, other), key=len)
    return one == other or (short == "Thread-*" and long.startswith(f"{short} ("))


def _found(
    runs: Sequence[Run], by_subject: Mapping[Subject, dict[int, list[Finding]]]
) -> dict[Subject, Found]:
    return {
        subject: Found(
            _costs(runs, found),
            frozenset(
                name
                for number, findings in found.items()
                for finding in findings
                for name in _names(runs[number], finding, finding.get("culprits") or None)[:1]
            ),
        )
        for subject, found in by_subject.items()
    }


def _names(run: Run, finding: Finding, tids: Sequence[int] | None = None) -> list[str]:
    """The patterns of the names of these threads, or of those that it is about."""
    names = {} if finding["pid"] is None else run.thread_names(finding["pid"])
    known = (names[tid] for tid in tids or finding["threads"] if tid in names)
    return [re.sub("[0-9]+", "*", name) for name in known]


def _without_file(subject: Subject) -> Subject:
    return replace(subject, function=(subject.function or "").rpartition(" (")[0])


def _by_subject(
    runs: Sequence[Run], commands: dict[str, str]
) -> dict[Subject, dict[int, list[Finding]]]:
    """The findings of each run, by its number."""
    found: dict[Subject, dict[int, list[Finding]]] = {}
    for number, run in enumerate(runs):
        for finding in run.findings:
            subject = _subject(finding, run, commands)
            found.setdefault(subject, {}).setdefault(number, []).append(finding)
    return found


def _costs(runs: Sequence[Run], found: dict[int, list[Finding]]) -> list[float | None]:
    """What it cost in each second of each run."""
    return [
        sum(finding["cost_s"] for finding in found.get(number, [])) / run.run_s
        if run.run_s > 0
        else None
        for number, run in enumerate(runs)
    ]


def _subject(finding: Finding, run: Run, commands: dict[str, str]) -> Subject:
    pid = finding["pid"]
    worst = [] if finding["kind"] == "unfair" else _names(run, finding)[:1]
    frame = finding.get("user_frame") or finding.get("frame")
    return Subject(
        finding["kind"],
        None if pid is None else commands.get(run.pattern(pid)),
        finding["gil"],
        worst[0] if worst else None,
        None if frame is None else _without_line(frame),
    )


def _without_line(frame: str) -> str:
    """`parse (app/parser.py:42)` as `parse (parser.py)`: lines move with every change."""
    match = re.fullmatch(r"(.*) \((.*?)(?::[0-9]+)?\)", frame, re.DOTALL)
    if match is None:
        return frame
    return f"{match[1]} ({match[2].rpartition('/')[2]})"
