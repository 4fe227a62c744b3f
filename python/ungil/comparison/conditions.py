"""Whether two sides can be compared: what else was different between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ungil.comparison.matching import Commands
from ungil.comparison.runs import Run
from ungil.formatting import digits, plural
from ungil.report.model import cut_of

# How many times as long as another one an interval may be, and count as the same.
_SAME_INTERVAL = 1.1


def warnings(before: Sequence[Run], after: Sequence[Run], commands: Commands) -> list[str]:
    """Sentences about what is not alike, without a final dot; none is best."""
    return [
        *_different("the Pythons differ", _python, before, after),
        *_different("the policies differ", _policy, before, after),
        *_intervals(before, after),
        *_same_files(before, after),
        *_commands(commands),
        *(said for side, runs in _sides(before, after) for said in _trouble(side, runs)),
    ]


def _sides(
    before: Sequence[Run], after: Sequence[Run]
) -> tuple[tuple[str, Sequence[Run]], tuple[str, Sequence[Run]]]:
    return (("before", before), ("after", after))


def _python(run: Run) -> str:
    return run.python or "unknown"


def _policy(run: Run) -> str:
    return run.policy or "unknown"


def _interval(run: Run) -> str:
    return "unknown" if run.interval_ms is None else f"{digits(run.interval_ms)} ms"


def _different(
    what: str, of: Callable[[Run], str], before: Sequence[Run], after: Sequence[Run]
) -> Iterator[str]:
    """Where nobody waited nobody told, and that is no difference."""
    sides = [sorted({of(run) for run in side} - {"unknown"}) for side in (before, after)]
    if all(sides) and (sides[0] != sides[1] or len(sides[0]) > 1):
        mine, theirs = (" and ".join(side) for side in sides)
        yield f"{what}: {mine} before, {theirs} after"


def _intervals(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """They are known from waits, and a little short where waits were few and the CPUs busy."""
    known = [run.interval_ms for run in (*before, *after) if run.interval_ms is not None]
    if known and max(known) > _SAME_INTERVAL * min(known):
        yield from _different("the switch intervals differ", _interval, before, after)


def _same_files(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    mine = {run.file for run in before}
    for file in dict.fromkeys(run.file for run in after if run.file in mine):
        yield f"{file!r} is on both sides"


def _commands(commands: Commands) -> Iterator[str]:
    for mine, theirs in commands.told_apart:
        yield f"the commands differ, but are compared: {mine!r} before, {theirs!r} after"


def _trouble(side: str, runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        if run.lost_events:
            events = plural(run.lost_events, "event")
            yield (
                f"{side}: {events} lost in {run.file!r}, so medians, contended time and findings "
                "are incomplete"
            )
        if cut := cut_of(run.notes):
            yield f"{side}: {run.file!r}: {cut}"
        if not any(process["gils"] for process in run.processes):
            yield f"{side}: no GIL was recorded in {run.file!r}"
