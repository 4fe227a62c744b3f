"""Which findings are gone, new, or cost another time than before."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ungil.comparison.matching import Commands
from ungil.comparison.measures import Finding
from ungil.comparison.metrics import Metric
from ungil.comparison.noise import Judged, judge
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
    for new, gone in renamed(mine, theirs):
        theirs[gone] = theirs.pop(new)
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
        compared.append(ComparedFinding(subject, found, text, cost, status))
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
    names = {} if pid is None else run.thread_names(pid)
    worst = [names[tid] for tid in finding["threads"] if tid in names][:1]
    if finding["kind"] == "unfair":
        worst = []
    frame = finding.get("user_frame") or finding.get("frame")
    return Subject(
        finding["kind"],
        None if pid is None else commands.get(run.pattern(pid)),
        finding["gil"],
        re.sub("[0-9]+", "*", worst[0]) if worst else None,
        None if frame is None else _without_line(frame),
    )


def _without_line(frame: str) -> str:
    """`parse (app/parser.py:42)` as `parse (parser.py)`: lines move with every change."""
    match = re.fullmatch(r"(.*) \((.*?)(?::[0-9]+)?\)", frame, re.DOTALL)
    if match is None:
        return frame
    return f"{match[1]} ({match[2].rpartition('/')[2]})"
