"""`ungil check`: limits for any program, and its exit status."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from suite import PROGRAMS

Run = Callable[..., subprocess.CompletedProcess[str]]

CHECKED = str(PROGRAMS / "checked.py")


@pytest.mark.parametrize(
    ("work", "program_status", "status"),
    [
        ("sleeps_with_it", 0, 1),
        ("computes_in_c", 0, 1),
        ("computes", 0, 0),
        ("nothing", 0, 0),
        ("nothing", 5, 3),
        ("sleeps_with_it", 5, 1),
    ],
)
def test_the_exit_status_tells_a_broken_limit_from_a_program_that_failed(
    ungil: Run, work: str, program_status: int, status: int
) -> None:
    ran = ungil("check", "--max-hold", "50ms", CHECKED, work, str(program_status))
    assert ran.returncode == status, ran.stderr
    assert ("kept the GIL for" in ran.stderr) == (status == 1)
    assert ("the program ended with status 5" in ran.stderr) == (program_status == 5)


def test_the_sentence_names_the_line(ungil: Run) -> None:
    ran = ungil("check", "--max-hold", "50ms", CHECKED, "computes_in_c", "0")
    assert re.search(
        r"ungil: MainThread kept the GIL for \S+ in computes_in_c \(.*checked\.py:\d+\); the hold "
        r"lasted \S+, of which the thread ran \S+ \(max_hold is 50ms\)",
        ran.stderr,
    ), ran.stderr


def test_a_wait_breaks_its_limit_and_the_json_tells_all(ungil: Run, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    ran = ungil("check", "--max-wait", "30ms", "--json", str(path), CHECKED, "sleeps_with_it", "0")
    assert ran.returncode == 1, ran.stderr
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (result["kept"], result["max_wait_ms"], result["max_hold_ms"]) == (False, 30, None)
    broken = result["broken"][0]
    assert (broken["kind"], broken["culprit_name"]) == ("wait", "MainThread")
    assert broken["tid"] != broken["culprit_tid"]
    assert broken["own_ms"] > 30
    assert broken["sentence"] in ran.stderr


def test_a_hold_that_nobody_waited_for_is_told_and_not_judged(ungil: Run) -> None:
    ran = ungil("check", "--max-hold", "50ms", CHECKED, "alone", "0")
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"in \d+ holds? longer than 50ms no thread waited, so it is unknown", ran.stderr
    )


def test_a_program_that_is_killed_has_failed(ungil: Run) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    ran = ungil("check", "--max-hold", "50ms", "-c", code)
    assert (ran.returncode, ran.stderr) == (3, "ungil: the program ended with signal 9\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((CHECKED,), "no limit was given; pass --max-hold 50ms, --max-wait 50ms, or both"),
        (("--max-hold", "50", CHECKED), "ungil: --max-hold: '50' is not a duration"),
        (("--max-hold", "50ms"), "no program to check"),
        (("--max-hold", "50ms", "-o", "-", CHECKED), "a trace cannot be written to standard"),
        (("--max-hold", "50ms", "-o", __file__, CHECKED), "exists; name another file with -o"),
        (
            ("--max-hold", "50ms", "--", "/bin/true"),
            "nothing was recorded, so there is nothing to judge",
        ),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(
    ungil: Run, words: tuple[str, ...], sentence: str
) -> None:
    ran = ungil("check", *words)
    assert ran.returncode == 2, ran.stderr
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1, ran.stderr


def test_the_trace_can_be_kept(ungil: Run, tmp_path: Path) -> None:
    path = tmp_path / "kept.pftrace"
    ran = ungil("check", "--max-hold", "1h", "-o", str(path), CHECKED, "nothing", "0")
    assert ran.returncode == 0, ran.stderr
    assert ungil("report", str(path)).returncode == 0
