"""What is advised where a simulation would take long: what is known without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reports import convoy, drawn
from suite import PATIENCE_S, PROGRAMS

from ungil._native import read_trace, write_page
from ungil.cli.advised import SIMULATED_BYTES, how_advised
from ungil.report.advice import LEFT_OUT
from ungil.report.page import SHELL

# Each trace is as a large one is.
LARGE = """
import sys
import ungil.cli, ungil.cli.advised
ungil.cli.advised.SIMULATED_BYTES = 0
sys.exit(ungil.cli.main())
"""


def large(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """What ungil does about a trace that is too large to be simulated unasked."""
    return subprocess.run(
        [sys.executable, "-c", LARGE, *map(str, words)],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def traced(folder: Path, *words: str | Path) -> tuple[Path, str]:
    """A trace, and what ungil said at the end of it."""
    trace = folder / "t.pftrace"
    done = large("trace", "-o", trace, "--", sys.executable, *words)
    return trace, " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("asked", "small", "big"),
    [(None, (True, True), (True, False)), (True, (True, True), (True, True))],
)
def test_a_large_trace_is_simulated_only_if_that_is_asked_for(
    tmp_path: Path, asked: bool | None, small: tuple[bool, bool], big: tuple[bool, bool]
) -> None:
    trace = tmp_path / "t.pftrace"
    for size, expected in ((SIMULATED_BYTES, small), (SIMULATED_BYTES + 1, big)):
        with trace.open("wb") as file:
            file.truncate(size)
        how = how_advised(str(trace), asked)
        assert (how["advise"], how["simulate"]) == expected
        assert how_advised(str(trace), asked=False) == {"advise": False, "simulate": False}


def test_of_a_convoy_it_is_told_that_what_would_help_was_left_out(tmp_path: Path) -> None:
    trace, said = traced(tmp_path, PROGRAMS / "convoy.py", "600")
    assert LEFT_OUT in said
    shown = large("report", trace).stdout
    assert LEFT_OUT in " ".join(shown.split())
    report: dict[str, Any] = json.loads(large("report", "--json", trace).stdout)
    assert report["remedies_left_out"]
    assert {it["kind"] for it in report["advised"]["advice"]} <= {"not-the-gil"}
    assert report["advised"]["rejected"] == []
    asked = json.loads(large("report", "--json", "--advise", trace).stdout)
    assert "remedies_left_out" not in asked
    assert "policy" in {it["kind"] for it in asked["advised"]["advice"]}
    none = json.loads(large("report", "--json", "--no-advice", trace).stdout)
    assert not {"advised", "remedies_left_out"} & set(none)


def test_what_it_is_where_it_is_not_the_gil_is_told_of_a_large_trace_too(tmp_path: Path) -> None:
    trace, said = traced(tmp_path, PROGRAMS / "elsewhere" / "exhausted_pool.py")
    assert "is exhausted" in said
    assert LEFT_OUT not in said
    large_one = json.loads(large("report", "--json", trace).stdout)
    # Nothing was left out, so this is all there is to say.
    assert large_one == json.loads(read_trace(str(trace), 20.0, advise=True))


def test_the_page_of_a_large_trace_has_what_its_report_has(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, PROGRAMS / "elsewhere" / "exhausted_pool.py")
    page = tmp_path / "page.html"
    shell = SHELL.read_text(encoding="utf-8")
    report = write_page(str(trace), str(page), shell, 20.0, advise=True, simulate=False)
    expected = read_trace(str(trace), 20.0, advise=True, simulate=False)
    assert json.loads(report)["advised"] == json.loads(expected)["advised"]
    assert "exhausted-pool" in expected


def test_a_report_without_any_cause_says_what_was_left_out() -> None:
    report = convoy()
    report["advised"] = {"schema": 1, "advice": [], "rejected": []}
    report["remedies_left_out"] = True
    assert LEFT_OUT in drawn(report, 200)
    # The findings have advice of their own, which no simulation has to prove.
    assert report["findings"][0]["advice"] in drawn(report, 400)
    del report["remedies_left_out"]
    assert "What to do" not in drawn(report)
