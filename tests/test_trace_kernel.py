"""Who kept the GIL: a thread that computes, one that sleeps, or the kernel that did not run it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from control_groups import control_group
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Running, compile_library, packets, trace

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
PYTHONS_2 = [python for python in PYTHONS if python.version < (3, 0)]
PYTHONS_3 = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13")
PROGRAM = PROGRAMS / "native.py"
# What the kernel's account of a thread lacks at most when a hold begins: a tick, and our own 1 ms.
LAG_MS = 11


def pinned() -> Callable[[], None]:
    """What makes a process run on one core only, always the same one."""
    core = min(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {core})


@pytest.fixture
def busy_core() -> Iterator[Callable[[], None]]:
    """A core on which three other programs compute."""
    with ExitStack() as stack:
        burning: list[subprocess.Popen[str]] = []
        for _ in range(3):
            words = ["/bin/sh", "-c", "echo burning; while :; do :; done"]
            # In a session of its own, each gets as much of the core as a program that is recorded.
            shell = subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=pinned(),
                start_new_session=True,
            )
            burning.append(stack.enter_context(shell))
            stack.callback(shell.kill)
        for shell in burning:
            assert shell.stdout is not None
            assert shell.stdout.readline() == "burning\n"
        yield pinned()


def kinds(recording: Recording) -> set[str]:
    """The kinds of all findings."""
    return {finding["kind"] for finding in recording.report["findings"]}


def long_holds(recording: Recording, name: str) -> list[dict[str, Any]]:
    """The long holds of a thread, in the order in which they happened."""
    (thread,) = [it for it in recording.gil["threads"] if it["name"] == name]
    holds = [it for it in recording.gil["long_holds"] if it["tid"] == thread["tid"]]
    return sorted(holds, key=lambda hold: hold["start_s"])


@pytest.mark.parametrize("python", pythons("2.7", "3.8", "3.11-debian", "3.13"), ids=str)
def test_pure_python_that_the_kernel_does_not_run_is_descheduled(
    tmp_path: Path, python: Python, busy_core: Callable[[], None]
) -> None:
    words = [python.path, PROGRAMS / "computing.py", "3", "3000000"]
    recording = trace(tmp_path, *words, preexec_fn=busy_core)
    finding = recording.finding("descheduled")
    assert "native-hold" not in kinds(recording)
    computing = {it["tid"] for it in recording.gil["threads"] if not it["main"]}
    assert set(finding["threads"]) <= computing
    assert 0 < finding["not_run_s"] < finding["held_s"]
    assert not finding["limited"]
    for thread in recording.gil["threads"]:
        # What the kernel did not run it cannot have run.
        assert thread["descheduled"]["not_run_s"] <= thread["held_s"]
        assert thread["kept"]["holds"] <= thread["unanswered"]["holds"]


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_threads_that_wait_for_a_processor_to_take_a_free_gil_wake_up_late(
    tmp_path: Path, python: Python
) -> None:
    words = [python.path, PROGRAMS / "oversubscribed.py", "150"]
    recording = trace(tmp_path, *words, preexec_fn=pinned())
    waited_s = sum(row["waited_s"] for row in recording.gil["blame"])
    unheld_s = sum(row["waited_s"] for row in recording.gil["blame"] if row["culprit"] is None)
    # Of 2.5 s or more, on every machine so far.
    assert unheld_s > 0.5
    assert len({"convoy", "late-wakeups"} & kinds(recording)) < 2
    # A machine that stops the one who has the GIL for 0.3 s makes 15 threads wait for it: 4 s.
    assert ("late-wakeups" in kinds(recording)) == (unheld_s >= waited_s / 2)
    if "late-wakeups" in kinds(recording):
        finding = recording.finding("late-wakeups")
        assert finding["waited_s"] == pytest.approx(waited_s)
        assert finding["cost_s"] == finding["unheld_s"] == pytest.approx(unheld_s)
        assert finding["wanting"] > 1


@pytest.mark.parametrize("python", pythons("3.8", "3.13", since=(3, 0)), ids=str)
@pytest.mark.parametrize("what", ["compute", "hold"])
def test_native_code_is_found_on_a_busy_core_whether_it_computes_or_sleeps(
    tmp_path: Path, python: Python, busy_core: Callable[[], None], what: str
) -> None:
    library = compile_library(tmp_path)
    words = [python.path, PROGRAM, library, what, "4", "200000"]
    recording = trace(tmp_path, *words, preexec_fn=busy_core, named=["keeping"])
    native = recording.finding("native-hold")
    assert native["threads"] == [recording.thread("keeping")["tid"]]
    kept = recording.thread("keeping")["kept"]
    assert (native["holds"], native["unanswered_s"]) == (kept["holds"], kept["total_s"])
    for hold in long_holds(recording, "keeping"):
        if hold["duration_ms"] >= 200 and hold["not_run_ms"] is not None:
            slept = hold["duration_ms"] - hold["cpu_ms"] - hold["not_run_ms"]
            assert (slept > 100) == (what == "hold"), hold


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_long_holds_tell_for_how_long_their_thread_ran(tmp_path: Path, python: Python) -> None:
    library = compile_library(tmp_path)
    call_ms = 60
    words = [python.path, PROGRAM, library, "compute", "10", str(call_ms * 1000)]
    # Python 2.7's names of threads are not known.
    named = [] if python in PYTHONS_2 else ["keeping"]
    recording = trace(tmp_path, *words, named=named)
    holds = long_holds(recording, "keeping") if named else recording.gil["long_holds"]
    (begun_ns,) = [
        packet.timestamp
        for packet in packets(recording.path)
        if packet.track_event.name == "process started"
    ]
    calls: list[tuple[int, int]] = recording.told
    told = 0
    for hold in holds:
        start_ns = begun_ns + hold["start_s"] * 1e9
        end_ns = start_ns + hold["duration_ms"] * 1e6
        # To the microsecond, which is more than JSON rounds off.
        inside = [it for it in calls if start_ns - 1e3 <= it[0] and it[1] <= end_ns + 1e3]
        told += len(inside)
        if inside:
            # Python code of the same thread comes on top, before and after a call.
            others_ms = 5 * len(inside)
            computed_ms = call_ms * len(inside)
            assert computed_ms <= hold["cpu_ms"] <= computed_ms + others_ms + LAG_MS, hold
            assert hold["cpu_ms"] + (hold["not_run_ms"] or 0) <= hold["duration_ms"] + 1e-6
    assert told == len(calls)


@pytest.mark.parametrize("python", PYTHONS_2, ids=str)
def test_nothing_is_said_of_a_hold_whose_beginning_was_not_seen(
    tmp_path: Path, python: Python
) -> None:
    # Python 2.7 makes its GIL with the first thread, and is known to have one by its first release.
    code = """
import sys, thread, time
sys.setcheckinterval(10 ** 9)
for _ in range(1000): pass  # Until the ticks of the interval before have run out.
thread.start_new_thread(len, ("",))
end = time.clock() + .06
while time.clock() < end: pass
"""
    recording = trace(tmp_path, python.path, "-c", code)
    first = min(recording.gil["long_holds"], key=lambda hold: hold["start_s"])
    assert first["duration_ms"] >= 60
    assert first["cpu_ms"] is None
    assert first["not_run_ms"] is None


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_a_program_that_dies_asleep_with_the_gil_was_in_native_code(
    tmp_path: Path, python: Python
) -> None:
    library = compile_library(tmp_path)
    words = [python.path, PROGRAM, library, "hold", "1", "900000000", "1.5"]
    recording = trace(tmp_path, *words, status=-signal.SIGALRM)
    native = recording.finding("native-hold")
    assert native["threads"] == [recording.thread("keeping")["tid"]]
    # On a busy machine it may have been kept from running before that, too.
    hold = long_holds(recording, "keeping")[-1]
    # Neither is known where a busy machine did not let ungil look for a quarter of the hold.
    awake_ms = (hold["cpu_ms"] or 0) + (hold["not_run_ms"] or 0)
    assert awake_ms < hold["duration_ms"] / 2


def test_a_report_tells_the_processors_of_a_program_and_its_cpu_limit(tmp_path: Path) -> None:
    with control_group() as group:
        group.limit(1.5)
        recording = trace(tmp_path, "-c", "import threading", preexec_fn=group.enter)
    allowed = len(os.sched_getaffinity(0))
    assert recording.process["processors"] == {"allowed": allowed, "limit": 1.5}


def test_a_cpu_limit_is_named_as_the_reason(tmp_path: Path) -> None:
    code = """
import sys, threading, time
def spin():
    while time.process_time() < end:
        pass
print("begun", flush=True)
sys.stdin.readline()
end = time.process_time() + .3
threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done", flush=True)
"""
    with control_group() as group:
        pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "preexec_fn": group.enter}
        with Running(tmp_path, ["-c", code], **pipe) as running:
            assert running.read_line() == "begun"
            group.limit(0.1)
            assert running.popen.stdin is not None
            running.popen.stdin.write("\n")
            running.popen.stdin.flush()
            assert running.read_line() == "done"
            group.unlimit()
            recording = running.finish()
    finding = recording.finding("descheduled")
    assert finding["limited"]
    throttled = recording.process["throttled"]
    assert throttled["times"] > 0
    assert throttled["stopped_s"] > 0
    assert f"the CPU limit stopped it {throttled['times']} times" in finding["text"]
    assert "raise the CPU limit" in finding["advice"]
    assert "native-hold" not in kinds(recording)
