"""Whether two sides of a comparison had about the same to do."""

from __future__ import annotations

import pytest

from ungil.comparison.metrics import METRICS
from ungil.comparison.noise import Judged, judge
from ungil.comparison.work import differs

Side = tuple[float | None, float, float]
"""CPU time and time with the GIL in a second, and blocking calls."""


def told(before: Side, after: Side) -> list[str]:
    """The warnings of a comparison of two runs; as many as the other way round."""
    there, back = (list(differs(measured(*sides))) for sides in ((before, after), (after, before)))
    assert len(there) == len(back)
    return there


def measured(before: Side, after: Side) -> dict[str, Judged]:
    """What the comparison measures of them."""
    sides = [
        dict(zip(("cpu", "held", "blocking_calls"), it, strict=True)) for it in (before, after)
    ]
    return {
        metric.key: judge(metric, [sides[0][metric.key]], [sides[1][metric.key]], None)
        for metric in METRICS
        if metric.key in sides[0]
    }


def test_a_side_that_had_next_to_nothing_to_do_is_hardly_comparable() -> None:
    assert told((0.88, 0.94, 2_812.0), (0.073, 0.0006, 0.4)) == [
        "the work differs, in 10 s: 8.80 s of CPU and 28,120 blocking calls before, 0.73 s of CPU "
        "and 4 blocking calls after; compare runs under the same load"
    ]


def test_where_cpu_time_is_not_known_the_time_with_the_gil_tells() -> None:
    assert told((None, 0.94, 2_812.0), (0.073, 0.0006, 0.0)) == [
        "the work differs, in 10 s: 9.40 s with the GIL and 28,120 blocking calls before, 0.01 s "
        "with the GIL and no blocking calls after; compare runs under the same load"
    ]


def test_a_server_that_is_idle_but_for_its_timer_is_hardly_comparable() -> None:
    assert told((0.067, 0.7, 58.0), (0.002, 0.002, 20.0)) != []


@pytest.mark.parametrize(
    "after",
    [(0.03, 0.03, 1_000.0), (0.3, 0.3, 10.0), (0.4, 0.4, 50_000.0), (0.1, 0.1, 300.0)],
    ids=["faster", "fewer calls", "more calls", "a third"],
)
def test_a_program_that_was_made_faster_is_comparable(after: Side) -> None:
    assert told((0.3, 0.3, 1_000.0), after) == []


def test_two_sides_that_do_nothing_are_comparable() -> None:
    assert told((0.01, 0.01, 1.0), (0.001, 0.001, 0.1)) == []
