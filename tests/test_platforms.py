"""`make platforms` judges what it sees, tells it as it was, and says what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from platforms import page
from platforms.checks import CHECKS, HOLDS, Wrong, off_percent
from platforms.interpreters import built
from platforms.rows import all_rows
from suite import PATIENCE_S
from tracing import Slice, Track

MS = 1_000_000


def holder(*slices: tuple[int, int]) -> Track:
    """A thread that held the GIL from and until these times."""
    held = [Slice("hold", start_ns, end_ns, gil=0) for start_ns, end_ns in slices]
    return Track(process=1, pid=1, tid=1, name="holder", slices=held)


def known() -> list[list[int]]:
    """Holds of 10 ms that a program tells of, each some time after the other."""
    starts = range(0, HOLDS * 20 * MS, 20 * MS)
    return [[it, it + 1000, it + 1000 + 10 * MS, it + 2000 + 10 * MS] for it in starts]


def recorded() -> list[tuple[int, int]]:
    """The same as a trace has them."""
    return [(began - 500, ended + 500) for _, began, ended, _ in known()]


def test_holds_that_were_recorded_as_they_were_are_off_by_nothing() -> None:
    assert off_percent(known(), holder(*recorded()), error_ns=0) == [0] * HOLDS


def test_a_hold_that_is_in_no_slice_is_wrong() -> None:
    with pytest.raises(Wrong, match="0 slices in the place of one hold"):
        off_percent(known(), holder(*recorded()[1:]), error_ns=0)


def test_a_hold_in_two_slices_is_wrong() -> None:
    (start_ns, end_ns), *rest = recorded()
    middle_ns = (start_ns + end_ns) // 2
    halves = [(start_ns, middle_ns), (middle_ns, end_ns)]
    with pytest.raises(Wrong, match="0 slices"):
        off_percent(known(), holder(*halves, *rest), error_ns=0)


def test_a_hold_that_was_recorded_too_long_is_off() -> None:
    (start_ns, end_ns), *rest = recorded()
    off = off_percent(known(), holder((start_ns, end_ns + MS), *rest), error_ns=0)
    assert off[0] == pytest.approx(10, rel=0.02)
    assert off[1:] == [0] * (HOLDS - 1)


def test_too_few_known_holds_are_wrong() -> None:
    with pytest.raises(Wrong, match="49 times and not 50 times"):
        off_percent(known()[1:], holder(*recorded()), error_ns=0)


def row(**cells: dict[str, str]) -> dict[str, Any]:
    """What is kept of a row in which all has passed but `cells`."""
    passed = {name: {"state": "passed", "text": "well"} for name in CHECKS}
    return {
        "date": "2026-11-25",
        "commit": "abc",
        "tag": "cp311-abi3-manylinux_2_28_x86_64",
        "place": "",
        "system": {
            "suite": "bookworm",
            "release": "Debian 12",
            "number": 12,
            "machine": "x86_64",
            "libc": "glibc 2.36",
        },
        "interpreter": {
            "version": "3.11.2",
            "free_threaded": False,
            "gil": True,
            "libc": "glibc 2.36",
            "origin": "pyenv",
            "linked": "executable",
        },
        "cells": {**passed, **cells},
    }


def test_the_page_has_the_sentence_of_what_failed(tmp_path: Path) -> None:
    failed = {"state": "failed", "text": "it said | this"}
    impossible = {"state": "impossible", "text": "needs 3.11"}
    about = {"cpus": "2", "kernel": "6"}
    page.written([row(doctor=failed, share=impossible)], tmp_path / "page.md", about)
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "1 rows: 4 checks passed, 1 are not possible there, 1 failed." in written
    assert "## Debian 12 (bookworm), glibc 2.36, x86-64" in written
    cells = "**failed**: `it said / this` | well | well | *needs 3.11* | well | well |"
    assert f"| 3.11.2 | pyenv | executable | {cells}" in written.splitlines()


def test_a_free_threaded_python_has_a_row_with_its_gil_and_one_without(tmp_path: Path) -> None:
    with_gil, without = row(), row()
    for each, gil in ((without, False), (with_gil, True)):
        each["interpreter"] |= {"version": "3.13.5", "free_threaded": True, "gil": gil}
    page.written([without, with_gil], tmp_path / "page.md", {"cpus": "2", "kernel": "6"})
    lines = (tmp_path / "page.md").read_text(encoding="utf-8").splitlines()
    first = [it.split(" | ")[0] for it in lines if it.startswith("| 3.13.5")]
    assert first == ["| 3.13.5, free-threaded, its GIL on", "| 3.13.5, free-threaded, its GIL off"]
    python = tmp_path / "free-threaded" / "bin" / "python3.13t"
    python.parent.mkdir(parents=True)
    python.touch()
    found = {it.name: it.has_gil for it in built(tmp_path)}
    assert found == {"3.13t-free-threaded": True, "3.13t-free-threaded-off": False}


def test_no_two_rows_have_one_name(tmp_path: Path) -> None:
    names = [it.name for it in all_rows(tmp_path)]
    assert len(names) == len(set(names)) >= 15


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "no-such-row"], "no row has 'no-such-row' in its name: see --list"),
        (["--only", "("], "--only '(' is no pattern: "),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "platforms", *words],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
