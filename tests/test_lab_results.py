"""Results of the lab: written whole or not at all, and read with care."""

from __future__ import annotations

import dataclasses
import json
import resource
from collections.abc import Generator
from pathlib import Path

import pytest
from lab import HEADER, result, results

from ungil.lab.results import BadResults, load


@pytest.fixture
def full_disk() -> Generator[None]:
    """No file may grow beyond 200 bytes: writing fails, and not at its first byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lab.json"
    saved = results(result("one", "3.11", "stock", wall_s=1.5), result("two", "", "go"))
    saved.save(path)
    read = load(path)
    assert read.as_json() == saved.as_json()
    assert read.header == HEADER
    assert [cell.experiment for cell in read] == ["one", "two"]
    assert read.rounds("3.11", "stock") == [{"wall_s": 1.5}]


def test_a_later_result_of_a_cell_takes_the_place_of_the_earlier_one() -> None:
    kept = results(result("one", "3.11", "stock", n=1))
    kept.add(result("one", "3.11", "stock", n=2))
    assert [cell.measured for cell in kept] == [{"n": 2}]


def test_another_size_or_round_is_another_cell() -> None:
    one = result("one", "3.11", "stock", n=1)
    kept = results(one)
    kept.add(dataclasses.replace(one, round=2))
    kept.add(dataclasses.replace(one, settings={"n": 5}))
    assert len(kept) == 3


def test_what_another_interpreter_of_that_name_did_is_dropped() -> None:
    kept = results(result("one", "3.11", "stock"), result("one", "3.12", "stock"))
    kept.use([{"name": "3.11", "version": "3.11.9"}])
    assert [cell.python for cell in kept] == ["3.12"]


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_the_results_that_were_there(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text("as it was")
    with pytest.raises(OSError, match="File too large"):
        results(result("one", "3.11", "stock", text="x" * 500)).save(path)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no results of ungil lab"),
        ("[1, 2]", "holds no results of ungil lab"),
        ('{"schema": 99}', "is of schema 99, this ungil reads 1"),
        ('{"schema": 1, "ungil": "1"}', "holds no complete results"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    with pytest.raises(BadResults, match=sentence):
        load(path)


def test_interpreters_come_in_the_order_in_which_they_were_used() -> None:
    kept = results(
        result("one", "2.7", "stock"), result("one", "3.9", "stock"), result("one", "3.10", "stock")
    )
    assert kept.pythons() == ["2.7", "3.9", "3.10"]
    assert json.loads(json.dumps(kept.as_json()))["schema"] == 1
