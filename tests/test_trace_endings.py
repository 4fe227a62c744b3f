"""However a program ends, its trace and its report are there, whole, and say what happened."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Running, compile_library, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
PROGRAM = PROGRAMS / "ending.py"


def was_recorded(recording: Recording) -> None:
    """Both computing threads were seen to hold, and to make others wait."""
    assert recording.stdout == "ready\n"
    process = recording.processes[0]
    (gil,) = process["gils"]
    computing = [it for it in gil["threads"] if not it["main"]]
    assert len(computing) == 2
    for thread in computing:
        assert thread["holds"]["count"] >= 3
    assert gil["contended_s"] > 0


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("way", ["exit", "_exit"])
def test_daemon_threads_do_not_keep_a_program_from_its_end(
    tmp_path: Path, python: Python, way: str
) -> None:
    was_recorded(trace(tmp_path, python.path, PROGRAM, way, status=3))


@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.12", "3.13"), ids=str)
def test_a_thread_may_end_after_the_program_has_begun_to(tmp_path: Path, python: Python) -> None:
    library = compile_library(tmp_path, "slow_end")
    was_recorded(trace(tmp_path, python.path, PROGRAM, "late", library, status=3))


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize(("way", "number"), [("abort", signal.SIGABRT), ("crash", signal.SIGSEGV)])
def test_a_crash_loses_nothing(
    tmp_path: Path, python: Python, way: str, number: signal.Signals
) -> None:
    was_recorded(trace(tmp_path, python.path, PROGRAM, way, status=-number))


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_kill_9_loses_nothing(tmp_path: Path, python: Python) -> None:
    with Running(tmp_path, [python.path, PROGRAM, "stay"]) as running:
        ready = running.read_line()
        running.signal_program(signal.SIGKILL)
        recording = running.finish(printed=ready)
    assert recording.status == -signal.SIGKILL
    was_recorded(recording)


def test_a_killed_program_leaves_no_session_directory(tmp_path: Path) -> None:
    code = "import os; print(os.environ['UNGIL_SESSION'], flush=True); os.kill(os.getpid(), 9)"
    recording = trace(tmp_path, "-c", code, status=-signal.SIGKILL)
    assert not Path(recording.stdout.strip()).exists()


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_ungil_hands_on_sigterm_and_reports(tmp_path: Path, python: Python) -> None:
    with Running(tmp_path, [python.path, PROGRAM, "stay"]) as running:
        ready = running.read_line()
        running.popen.send_signal(signal.SIGTERM)
        recording = running.finish(printed=ready)
    assert recording.status == -signal.SIGTERM
    was_recorded(recording)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_ctrl_c_ends_the_program_and_not_the_report(tmp_path: Path, python: Python) -> None:
    with Running(tmp_path, [python.path, PROGRAM, "stay"]) as running:
        ready = running.read_line()
        running.signal_all(signal.SIGINT)
        recording = running.finish(printed=ready)
    # From 3.8 on a program that does not handle it dies of the signal, before it exits with 1.
    assert recording.status == (-signal.SIGINT if python.version >= (3, 8) else 1)
    assert "KeyboardInterrupt" in recording.stderr
    was_recorded(recording)


def test_an_image_that_is_replaced_is_a_process_of_its_own(tmp_path: Path) -> None:
    chain = pythons()
    # Each image starts the next one; the last one ends as it was told to.
    words: list[str | Path] = []
    for number, python in enumerate(chain):
        way = "exec" if number < len(chain) - 1 else "exit"
        words += [python.path, PROGRAM, way]
    recording = trace(tmp_path, *words, status=3)
    assert recording.stdout == "ready\n" * len(chain)
    assert len({it["pid"] for it in recording.processes}) == 1
    in_order = sorted(recording.processes, key=lambda it: it["started_s"])
    versions = [tuple(map(int, it["python"].split(".")[:2])) for it in in_order]
    assert versions == [it.version for it in chain]
    for before, after in pairwise(in_order):
        assert before["argv"][-len(after["argv"]) :] == after["argv"]
        assert len(before["gils"]) == 1
