"""Whether threads waited so little, or did so much more, that a longer wait is nothing worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from ungil.comparison.metrics import FOR_LOCKS
from ungil.comparison.noise import TOLD_APART, Judged, Verdict
from ungil.comparison.runs import Run
from ungil.report.model import Report, Thread

HARDLY = 0.02
"""Threads hardly waited if all of them did for less of their time (of 1),"""
HARDLY_ONE = 0.05
"""no thread did for more of its own time, as in the findings of a report,"""
LEAST_S = 0.05
"""(of a thread that waited for less in all nobody notices anything)"""
MORE_CALLS = 2.0
"""So many times more blocking calls are more work, and each is to be compared."""

_OF_WAITS = frozenset(
    {"waited", "wait_p50", "wait_p99", "waited_after_blocking", "contended", "cost"}
)
# Those for locks are none for the GIL.
_BY_CALL = _OF_WAITS | {FOR_LOCKS.key}
_NEITHER: dict[Verdict, Verdict] = {"worse": "more", "better": "less"}


@dataclass(frozen=True)
class Little:
    """The parts (of 1) of their time for which the threads of both sides waited for the GIL."""

    before: float
    after: float


def waited_little(before: Sequence[Run], after: Sequence[Run]) -> Little | None:
    """How little that was; None if it was more, or if a report finds something wrong."""
    shares: list[float] = []
    for side in (before, after):
        waited_s = lived_s = 0.0
        for run in side:
            report = cast("Report", run.measures["report"])
            # What is the limit of all threads alike has an advice.
            if any(it["kind"] != "none" or it.get("advice") for it in report["findings"]):
                return None
            for waits_s, lives_s in _waits(report):
                if waits_s > max(LEAST_S, HARDLY_ONE * lives_s):
                    return None
                waited_s, lived_s = waited_s + waits_s, lived_s + lives_s
            waited_s += _of_others_s(report)
        if lived_s <= 0 or waited_s > HARDLY * lived_s:
            return None
        shares.append(waited_s / lived_s)
    return Little(*shares) if len(shares) == 2 else None


def _waits(report: Report) -> list[tuple[float, float]]:
    """How long each thread waited, and how long it lived since its process had a second one."""
    waits: list[tuple[float, float]] = []
    for process in report["processes"]:
        started_s = process.get("started_s", 0.0)
        begin_s = started_s + (process.get("startup_s") or 0.0)
        end_s = started_s + process.get("duration_s", report["duration_s"])
        for gil in process["gils"]:
            waits += [(it["waited_s"], _life_s(it, begin_s, end_s)) for it in gil["threads"]]
    return waits


def _of_others_s(report: Report) -> float:
    """What threads waited that are not listed; how long they lived is not known."""
    unlisted = [report.get("other_processes")]
    unlisted += [gil.get("others") for it in report["processes"] for gil in it["gils"]]
    return sum(it["waited_s"] for it in unlisted if it)


def _life_s(thread: Thread, begin_s: float, end_s: float) -> float:
    ended_s = thread.get("ended_s")
    began_s = max(thread.get("started_s", 0.0), begin_s)
    return max((end_s if ended_s is None else ended_s) - began_s, 0.0)


def neither(metrics: dict[str, Judged]) -> dict[str, Judged]:
    """The same, with waits that are neither better nor worse."""
    return {key: as_neither(it) if key in _OF_WAITS else it for key, it in metrics.items()}


def as_neither(judged: Judged) -> Judged:
    """The same number, which is more or less, and nothing better or worse."""
    return replace(judged, verdict=_NEITHER.get(judged.verdict, judged.verdict))


def more_calls(metrics: dict[str, Judged]) -> float | None:
    """How many times more blocking calls there were after; None if not so many more."""
    calls = metrics.get("blocking_calls")
    if calls is None or calls.verdict != "more":
        return None
    before, after = calls.before_median or 0.0, calls.after_median or 0.0
    return after / before if 0 < before * MORE_CALLS <= after else None


def by_call(metrics: dict[str, Judged]) -> dict[str, Judged]:
    """The same, but a wait that is longer, and not so for each blocking call, is nothing worse."""
    more = more_calls(metrics)
    if more is None:
        return metrics
    return {
        key: as_neither(it) if key in _BY_CALL and as_long_for_each(it, more) else it
        for key, it in metrics.items()
    }


def as_long_for_each(judged: Judged, more: float) -> bool:
    """Whether it grew no more than the number of calls, which is `more` times as many."""
    before, after = judged.before_median or 0.0, judged.after_median or 0.0
    return judged.verdict == "worse" and after <= TOLD_APART * more * before
