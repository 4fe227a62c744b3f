"""Whether both sides had as much to do: who has less to do waits less, without any change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ungil.comparison.noise import Judged
from ungil.formatting import digits

# So many times more, at least, in CPU time and in blocking calls alike. What makes a program faster
# changes one of them, but hardly both.
_EACH = 2.0
# And so many times more, both multiplied.
_BOTH = 16.0
# A side that is busy for a smaller part of the time does next to nothing, as the other one.
_LEAST_BUSY = 0.02


def differs(metrics: Mapping[str, Judged]) -> Iterator[str]:
    """A sentence about it, without a final dot, if the sides can hardly be compared for it."""
    calls = metrics["blocking_calls"]
    cpu, held = metrics["cpu"], metrics["held"]
    # The CPU time of threads that still run is not known.
    is_known = None not in (*cpu.before, *cpu.after)
    busy, what = (cpu, "of CPU") if is_known else (held, "with the GIL")
    mine, theirs = (
        (busy.before_median or 0.0, calls.before_median or 0.0),
        (busy.after_median or 0.0, calls.after_median or 0.0),
    )
    for more, less in ((mine, theirs), (theirs, mine)):
        is_more = all(many > _EACH * few for many, few in zip(more, less, strict=True))
        if is_more and more[0] >= _LEAST_BUSY and more[0] * more[1] > _BOTH * less[0] * less[1]:
            said = (
                f"{digits(10 * seconds)} s {what} and {_count(10 * number)} blocking calls {when}"
                for (seconds, number), when in ((mine, "before"), (theirs, "after"))
            )
            yield f"the work differs, in 10 s: {', '.join(said)}; compare runs under the same load"


def _count(number: float) -> str:
    return f"{round(number):,}" if number else "no"
