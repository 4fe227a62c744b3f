"""A free-threaded build is reported by what its GIL was at run time, and scheduled if it is on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, free_threaded
from scheduling import OBEYING, Obeying
from suite import PROGRAMS
from tracing import Recording, trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

PROGRAM = str(PROGRAMS / "free_threads.py")
pytestmark = pytest.mark.parametrize("python", free_threaded(), ids=str)


def traced(folder: Path, python: Python, *words: str, **variables: str) -> Recording:
    """A recording of `free_threads.py` with these words and variables."""
    return trace(folder, python.path, PROGRAM, *words, env={**os.environ, **variables})


def check_threads(process: dict[str, Any]) -> None:
    """Its threads are there, as under any GIL."""
    assert process["not_recorded"] is None
    (gil,) = process["gils"]
    workers = [thread for thread in gil["threads"] if not thread["main"]]
    assert len(workers) == 3
    assert all(worker["voluntary"] + worker["forced"] >= 20 for worker in workers)


def test_a_gil_that_is_off(tmp_path: Path, python: Python) -> None:
    recording = traced(tmp_path, python)
    assert recording.stdout == "False\n"
    assert recording.process["free_threaded"] == {"gil": "off", "gil_on_s": None}
    assert recording.process["not_recorded"] == "this Python is free-threaded, and its GIL was off"
    assert recording.finding("not-recorded")


def test_a_gil_that_is_on(tmp_path: Path, python: Python) -> None:
    recording = traced(tmp_path, python, PYTHON_GIL="1")
    assert recording.stdout == "True\n"
    state = recording.process["free_threaded"]
    assert state["gil"] == "on"
    # From the making of the GIL, which comes before anybody takes it.
    assert state["gil_on_s"] <= min(it["started_s"] for it in recording.gil["threads"])
    check_threads(recording.process)


def test_a_gil_that_an_import_switches_on(tmp_path: Path, python: Python) -> None:
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    asked = subprocess.run([python.path, "-c", ask], capture_output=True, text=True, check=True)
    module, source = tmp_path / "needs_gil.so", PROGRAMS / "needs_gil.c"
    options = ["-shared", "-fPIC", "-I", asked.stdout.strip(), "-o", module]
    subprocess.run(["cc", *options, source], check=True)
    recording = traced(tmp_path, python, "needs_gil", PYTHONPATH=str(tmp_path))
    assert recording.stdout == "True\n"
    state = recording.process["free_threaded"]
    assert state["gil"] == "switched on"
    # Between the start and the first of the threads, which take it.
    workers = [it["started_s"] for it in recording.gil["threads"] if not it["main"]]
    assert 0 < state["gil_on_s"] <= min(workers)
    check_threads(recording.process)


def test_a_gil_that_is_on_is_scheduled(start: Start, python: Python) -> None:
    words = ("run", "--policy", "fair", python.path, str(OBEYING))
    obeying = Obeying(start, *words, env={**os.environ, "PYTHON_GIL": "1"})
    assert obeying.policy() == ("fair", 5)


def test_one_that_may_be_off_is_told(ungil: RunUngil, python: Python) -> None:
    said = f"ungil: {python.path} is a free-threaded Python, whose GIL is scheduled only while "
    assert ungil("run", python.path, PROGRAM).stderr == f"{said}it is on\n"
    on = {**os.environ, "PYTHON_GIL": "1"}
    assert ungil("run", python.path, PROGRAM, env=on).stderr == ""
    assert ungil("run", "--", python.path, "-X", "gil=1", PROGRAM).stderr == ""


def test_the_doctor_tries_it_with_its_gil(ungil: RunUngil, python: Python) -> None:
    outcome = ungil("doctor", python.path, env={**os.environ, "COLUMNS": "300"})
    assert "recorded with 2 threads while its GIL is on" in outcome.stdout
