"""Which differences between the sides of a comparison are told of."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ungil.comparison.conditions import warnings
from ungil.comparison.matching import Commands
from ungil.comparison.measures import Measures
from ungil.comparison.runs import Run


def run(
    interval_ms: float | None = 5.0,
    name: str | None = None,
    *,
    cpu_s: float | None = 1.0,
    voluntary: int = 100,
) -> Run:
    """A trace of 10 s of a program in which threads waited under that switch interval."""
    group = {"threads": 8, "cpu_threads": 8, "cpu_s": cpu_s, "held_s": 2.0, "voluntary": voluntary}
    if cpu_s is None:
        group |= {"cpu_threads": 7, "cpu_s": 0.0, "held_s": voluntary / 1e3}
    gils = [{"groups": [group]}]
    process: dict[str, Any] = {"policy": "stock", "switch_interval_ms": interval_ms, "gils": gils}
    report = {
        "python": "3.11.7",
        "processes": [process],
        "lost_events": 0,
        "notes": [],
        "duration_s": 10.0,
    }
    whole = {"start_s": 0.0, "end_s": 10.0, "processes": [process]}
    measures = {"report": report, "whole": whole}
    return Run(name or f"{interval_ms}.pftrace", cast("Measures", measures))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([5.0, 4.9998], [4.994], []),
        ([5.0], [4.6], []),
        ([5.0], [None], []),
        ([None], [None], []),
        ([5.0], [1.0], ["the switch intervals differ: 5.00 ms before, 1.00 ms after"]),
        (
            [1.0, 5.0],
            [5.0],
            ["the switch intervals differ: 1.00 ms and 5.00 ms before, 5.00 ms after"],
        ),
    ],
)
def test_switch_intervals_differ_by_more_than_a_tenth(
    before: list[float | None], after: list[float | None], expected: list[str]
) -> None:
    sides = ([run(it) for it in before], [run(it) for it in after])
    told = warnings(*sides, Commands({}, {}, []))
    assert [it for it in told if "is on both sides" not in it] == expected


def told_of_work(before: Run, after: Run) -> list[str]:
    """The warnings of a comparison of two runs, both ways round."""
    there = warnings([before], [after], Commands({}, {}, []))
    back = warnings([after], [before], Commands({}, {}, []))
    assert len(there) == len(back)
    return there


def test_a_side_that_had_next_to_nothing_to_do_is_hardly_comparable() -> None:
    loaded = run(name="loaded", cpu_s=3.08, voluntary=41_000)
    idle = run(name="idle", cpu_s=0.23, voluntary=97)
    assert told_of_work(loaded, idle) == [
        "the work differs, in 10 s: 3.08 s of CPU and 41,000 voluntary releases before, 0.23 s of "
        "CPU and 97 voluntary releases after; compare runs under the same load"
    ]
    # Of threads that still run the CPU time is not known.
    loaded, idle = (
        run(name="loaded", cpu_s=None, voluntary=4_000),
        run(name="idle", cpu_s=None, voluntary=1),
    )
    assert told_of_work(loaded, idle) == [
        "the work differs, in 10 s: 4.00 s with the GIL and 4,000 voluntary releases before, "
        "0.00 s with the GIL and 1 voluntary release after; compare runs under the same load"
    ]


@pytest.mark.parametrize(
    "after",
    [
        run(name="faster", cpu_s=0.3, voluntary=10_000),
        run(name="fewer calls", cpu_s=3.0, voluntary=100),
        run(name="more calls", cpu_s=4.0, voluntary=500_000),
        run(name="a third", cpu_s=1.0, voluntary=3_000),
    ],
    ids=lambda it: it.file,
)
def test_a_program_that_was_made_faster_is_comparable(after: Run) -> None:
    assert told_of_work(run(name="before", cpu_s=3.0, voluntary=10_000), after) == []


def test_two_sides_that_do_nothing_are_comparable() -> None:
    mine, theirs = (
        run(name="mine", cpu_s=0.1, voluntary=10),
        run(name="theirs", cpu_s=0.01, voluntary=1),
    )
    assert told_of_work(mine, theirs) == []
