"""Which differences between the sides of a comparison are told of."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ungil.comparison.conditions import warnings
from ungil.comparison.matching import Commands
from ungil.comparison.measures import Measures
from ungil.comparison.runs import Run


def run(interval_ms: float | None) -> Run:
    """A trace of a program in which threads waited under that switch interval."""
    process: dict[str, Any] = {"policy": "stock", "switch_interval_ms": interval_ms, "gils": [{}]}
    report = {"python": "3.11.7", "processes": [process], "lost_events": 0, "notes": []}
    measures = {"report": report, "whole": {"processes": [process]}}
    return Run(f"{interval_ms}.pftrace", cast("Measures", measures))


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
