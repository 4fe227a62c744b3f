"""What made the program slow, and was not the GIL: whether that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import cast

from ungil.comparison.noise import MODES
from ungil.comparison.runs import Run
from ungil.formatting import digits
from ungil.report.frames import short_frame
from ungil.report.model import Advice, Report

_BLOCKED = "blocked-event-loop"
_UNKNOWN = "unknown"
# With so few runs, a change has to be by such a factor.
_APART = MODES[0][1]
# The advice about a trace has so many of these at most. Another one may be missing.
_MOST = 3
_SECONDS = 10.0


def changed(before: Sequence[Run], after: Sequence[Run], *, little: bool) -> list[str]:
    """Sentences about it, without a final dot.

    Only where threads waited `little` for the GIL on both sides, all of it is known.
    """
    return [*_of_loops(before, after), *(_gone(before, after) if little else ())]


def _causes(run: Run) -> list[Advice]:
    advised = cast("Report", run.measures["report"]).get("advised")
    return [it for it in advised["advice"] if it["kind"] == "not-the-gil"] if advised else []


def _of_loops(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """For how long what ran on an event loop kept it from going on."""
    mine, theirs = ([_blocked(run) for run in side] for side in (before, after))
    small, large = sorted((mine, theirs), key=median)
    if median(large) > _APART * median(small) and min(large) > max(small):
        was, is_now = (
            f"{digits(_SECONDS * median(it), 2) if any(it) else 0} s{_mostly_in(side)}"
            for it, side in ((mine, before), (theirs, after))
        )
        yield f"the event loop was blocked for {was} in 10 s before, {is_now} after"


def _mostly_in(side: Sequence[Run]) -> str:
    """` by parse (app.py:12)`: what blocked it for longest, in the latest run that tells."""
    worst = [next((it for it in _causes(run) if it["cause"] == _BLOCKED), None) for run in side]
    functions = [it["subject"]["function"] for it in worst if it is not None]
    return f" by {short_frame(functions[-1])}" if functions and functions[-1] else ""


def _blocked(run: Run) -> float:
    """In each second."""
    told = (it["evidence"] for it in _causes(run) if it["cause"] == _BLOCKED)
    # The first time of each is how long that was.
    took = (next((it["value"] for it in all_ if it["unit"] == "s"), 0.0) for all_ in told)
    return sum(took) / run.duration_s if run.duration_s > 0 else 0.0


def _gone(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """The cause that was told first."""
    firsts = {it[0]["cause"] if it else None for it in map(_causes, before)}
    if len(firsts) != 1 or not firsts.isdisjoint({None, _UNKNOWN, _BLOCKED}):
        return
    now = [_causes(run) for run in after]
    if all(len(it) < _MOST and firsts.isdisjoint(one["cause"] for one in it) for it in now):
        yield f"the cause {firsts.pop()}, which was the first thing to look at, is gone"
