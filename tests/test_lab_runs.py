"""A run of the lab: what is measured, what is measured again, what is continued."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lab import HEADER, cell, chosen

from ungil.errors import UsageError
from ungil.lab.disturbance import Reading
from ungil.lab.experiment import Cell, CellFailed, Missing
from ungil.lab.results import Header, Result, Results, load
from ungil.lab.runs import REPETITIONS, Run


class Watch:
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float]] = []

    def begin(self, cell: Cell, left_s: float) -> None:
        self.begun.append((cell.variant, left_s))

    def end(self, cell: Cell, result: Result) -> None:
        assert result.variant == cell.variant


def finish(
    path: Path,
    cells: Sequence[Cell],
    *,
    header: Header = HEADER,
    fresh: bool = False,
    retry: bool = False,
    named: bool = True,
) -> tuple[list[str], Results]:
    """Which variants a run measured, and its results."""
    watch = Watch()
    kept = Run(path, header, cells, fresh=fresh, retry=retry, named=named).finish(watch)
    return [variant for variant, _ in watch.begun], kept


def raising(error: Exception) -> Any:
    def measure() -> dict[str, Any]:
        raise error

    return measure


def test_what_an_earlier_run_has_measured_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    assert finish(path, [cell("a")])[0] == ["a"]
    measured, kept = finish(path, [cell("a"), cell("b")])
    assert measured == ["b"]
    assert [one.variant for one in kept] == ["a", "b"]
    assert finish(path, [cell("a"), cell("b")], fresh=True)[0] == ["a", "b"]


def test_what_failed_is_tried_again_and_what_was_missing_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    cells = [
        cell("a", raising(Missing("strace is not installed"))),
        cell("b", raising(CellFailed("it died"))),
    ]
    _, kept = finish(path, cells)
    assert [(one.status, one.why) for one in kept] == [
        ("missing", "strace is not installed"),
        ("failed", "it died"),
    ]
    measured, kept = finish(path, [cell("a"), cell("b")])
    assert measured == ["b"]
    assert [(one.status, one.why) for one in kept] == [
        ("missing", "strace is not installed"),
        ("measured", None),
    ]
    measured, kept = finish(path, [cell("a"), cell("b")], retry=True)
    assert measured == ["a"]
    assert {one.status for one in kept} == {"measured"}


def test_how_much_an_earlier_run_has_measured_and_how_much_it_could_not(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    lacking = cell("a", raising(Missing("strace is not installed")))
    finish(path, [lacking, cell("b")])
    cells = [lacking, cell("b"), cell("c")]
    run = Run(path, HEADER, cells, fresh=False, named=True)
    assert (run.resumed, run.lacking, len(run.left)) == (1, 1, 1)
    run = Run(path, HEADER, cells, fresh=False, retry=True, named=True)
    assert (run.resumed, run.lacking, len(run.left)) == (1, 0, 2)


def test_each_result_is_in_the_file_before_the_next_cell_begins(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    seen: list[int] = []

    def measure() -> dict[str, Any]:
        seen.append(len(load(path)))
        return {}

    finish(path, [cell("a", measure), cell("b", measure), cell("c", measure)])
    assert seen == [0, 1, 2]
    assert len(load(path)) == 3


def test_another_size_is_measured_beside_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    finish(path, [cell("a", n=1)])
    measured, kept = finish(path, [cell("a", n=2)])
    assert measured == ["a"]
    assert [one.settings for one in kept] == [{"n": 2}]
    assert len(load(path)) == 2


def test_another_interpreter_of_that_name_is_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    finish(path, [cell("a")])
    other = dataclasses.replace(chosen(), version="3.99.0")
    assert finish(path, [cell("a", interpreter=other)])[0] == ["a"]


OTHERS = [
    (dataclasses.replace(HEADER, ungil="9.9"), "holds results of ungil 1.2.3"),
    (dataclasses.replace(HEADER, quick=False), "holds results of a quick run"),
    (
        dataclasses.replace(HEADER, machine={**HEADER.machine, "cores": 64}),
        r"holds results of another machine \(cores 2, here 64\)",
    ),
]


@pytest.mark.parametrize(("header", "sentence"), OTHERS)
def test_results_of_another_kind_are_not_mixed_with_ours(
    tmp_path: Path, header: Header, sentence: str
) -> None:
    path = tmp_path / "lab.json"
    finish(path, [cell("a")])
    with pytest.raises(UsageError, match=f"{sentence}; name another file"):
        finish(path, [cell("a")], header=header)
    assert load(path).header == HEADER
    # What nobody named is ours to replace.
    assert finish(path, [cell("a")], header=header, named=False)[0] == ["a"]
    assert load(path).header == header


def test_a_file_that_holds_something_else_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "thesis.json"
    path.write_text("years of work")
    with pytest.raises(UsageError, match="holds no results of ungil lab"):
        finish(path, [cell("a")])
    assert path.read_text() == "years of work"


def test_results_that_cannot_be_written_stop_a_run_before_it_measures(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(UsageError, match=r"cannot save results to .*: .*; what was saved before"):
        finish(place / "lab.json", [cell("a", raising(AssertionError("it was measured")))])


def test_the_estimate_goes_down_by_what_each_cell_takes(tmp_path: Path) -> None:
    watch = Watch()
    Run(tmp_path / "x", HEADER, [cell("a"), cell("b")], fresh=False, named=True).finish(watch)
    assert watch.begun == [("a", 2.0), ("b", 1.0)]


@pytest.mark.parametrize(("quick", "tries"), [(True, 1), (False, 1 + REPETITIONS)])
def test_a_full_run_measures_again_what_others_disturb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool, tries: int
) -> None:
    shares = iter([0.9, 0.3, 0.5])

    def others_since(_after: Reading, _before: Reading) -> float:
        return next(shares)

    monkeypatch.setattr(Reading, "others_since", others_since)
    measured: list[int] = []

    def measure() -> dict[str, Any]:
        measured.append(len(measured))
        return {"try": measured[-1]}

    header = dataclasses.replace(HEADER, quick=quick)
    _, kept = finish(tmp_path / "lab.json", [cell("a", measure)], header=header)
    assert len(measured) == tries
    # The least disturbed one counts.
    assert [one.others for one in kept] == [0.9 if quick else 0.3]
    assert [one.measured["try"] for one in kept] == [0 if quick else 1]
