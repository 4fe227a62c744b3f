"""A free-threaded build is reported by what its GIL was at run time, and scheduled if it is on.

While it is off the parks of its threads are recorded.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from extensions import build_extension
from pythons import Python, free_threaded
from scheduling import OBEYING, Obeying
from suite import PROGRAMS
from tracing import Recording, trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

PROGRAM = str(PROGRAMS / "free_threads.py")
TIMES = 5
"""How often a thread of `kept_waiting.py` is kept waiting."""
pytestmark = pytest.mark.parametrize("python", free_threaded(), ids=str)


def traced(folder: Path, python: Python, *words: str, **variables: str) -> Recording:
    """A recording of `free_threads.py` with these words and variables."""
    return trace(folder, python.path, PROGRAM, *words, env={**os.environ, **variables})


def parking(folder: Path, python: Python, kind: str) -> Recording:
    """A recording of a thread that is kept waiting for a known time."""
    build_extension(folder, python.path, "parking")
    program = str(PROGRAMS / "kept_waiting.py")
    return trace(folder, python.path, program, kind, env={**os.environ, "PYTHONPATH": str(folder)})


def assert_same_lengths(recording: Recording) -> None:
    """The longest parks of the waiting thread are as long as the program says.

    On a busy machine the kernel may keep the thread from running right before one, or right after
    it, which the program counts as well; so this is about the middle one.
    """
    (track,) = [it for it in recording.tracks if it.parks and it.tid != it.pid]
    lengths = sorted(it.length_ns for it in track.parks)[-TIMES:]
    assert median(lengths) == pytest.approx(median(recording.told), rel=0.02)


def parked(recording: Recording, cause: str) -> dict[str, Any]:
    """The parks of the thread that is not the main one with this cause."""
    (thread,) = [it for it in recording.process["parks"]["threads"] if not it["main"]]
    (parked,) = [it for it in thread["causes"] if it["cause"] == cause]
    return parked


def place(program: str, text: str) -> str:
    """The file of one of our programs and its line with this text, as a frame ends."""
    lines = (PROGRAMS / program).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.strip() == text]
    return f"{program}:{number})"


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
    unknown = dict.fromkeys(("gil_on_s", "module", "library", "frame"))
    assert recording.process["free_threaded"] == {"gil": "off", **unknown}
    assert recording.process["not_recorded"] == "this Python is free-threaded, and its GIL was off"
    assert recording.finding("none")["text"].startswith(
        "nothing wrong: this Python is free-threaded"
    )


def test_a_gil_that_is_on(tmp_path: Path, python: Python) -> None:
    recording = traced(tmp_path, python, PYTHON_GIL="1")
    assert recording.stdout == "True\n"
    state = recording.process["free_threaded"]
    assert state["gil"] == "on"
    # From the making of the GIL, which comes before anybody takes it.
    assert state["gil_on_s"] <= min(it["started_s"] for it in recording.gil["threads"])
    check_threads(recording.process)


def test_a_gil_that_an_import_switches_on(tmp_path: Path, python: Python) -> None:
    build_extension(tmp_path, python.path, "needs_gil")
    recording = traced(tmp_path, python, "needs_gil", PYTHONPATH=str(tmp_path))
    assert recording.stdout == "True\n"
    state = recording.process["free_threaded"]
    assert state["gil"] == "switched on"
    assert (state["module"], state["library"]) == ("needs_gil", str(tmp_path / "needs_gil.so"))
    importing = place("free_threads.py", "__import__(sys.argv[1])")
    assert state["frame"].startswith("<module> (")
    assert state["frame"].endswith(importing)
    finding = recording.finding("gil-switched-on")
    said = f"the import of needs_gil ({importing[:-1]}) switched the GIL of this process on"
    assert said in finding["text"]
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


@pytest.mark.parametrize("kind", ["object", "lock", "rlock"])
def test_a_park_for_a_lock_is_as_long_as_the_thread_itself_says(
    tmp_path: Path, python: Python, kind: str
) -> None:
    recording = parking(tmp_path, python, kind)
    cause = "object" if kind == "object" else "lock"
    rows = [it for it in recording.process["parks"]["waits"] if it["cause"] == cause]
    # Threads are started and joined by locks, too.
    rows = [it for it in rows if it["tid"] != recording.process["pid"]]
    row = max(rows, key=lambda it: it["waited_s"])
    assert_same_lengths(recording)
    assert (row["count"], row["together"]) == (TIMES, False)
    assert parked(recording, cause)["waited_s"] >= row["waited_s"]
    (waker,) = row["wakers"]
    assert (waker["tid"], waker["count"]) == (recording.process["pid"], TIMES)
    if kind == "object":
        assert row["of"] == "Shared"


@pytest.mark.parametrize(
    ("kind", "waits", "wakes"),
    [
        ("object", "waited_ns.append(parking.take(shared))", "parking.hold(shared, HELD_MS)"),
        ("lock", "with lock:  # which the other thread has", "with lock:  # for a known time"),
    ],
)
def test_a_park_names_its_thread_and_the_lines_of_who_waited_and_of_who_woke_it(
    tmp_path: Path, python: Python, kind: str, waits: str, wakes: str
) -> None:
    recording = parking(tmp_path, python, kind)
    rows = [it for it in recording.process["parks"]["waits"] if it["name"] == "waiter"]
    row = max(rows, key=lambda it: it["waited_s"])
    (where,) = row["places"]
    program = "kept_waiting.py"
    assert where["count"] == TIMES
    assert where["frame"] == where["user_frame"] == where["stack"][0]
    assert where["frame"].endswith(place(program, waits))
    # Python starts a thread in its own code.
    assert "threading.py" in where["stack"][-1]
    (waker,) = row["wakers"]
    assert waker["frame"].endswith(place(program, wakes))


def test_threads_that_nobody_keeps_waiting_have_their_names_too(
    tmp_path: Path, python: Python
) -> None:
    recording = trace(tmp_path, python.path, str(PROGRAMS / "idle_pool.py"))
    names = {it["name"] for it in recording.process["parks"]["threads"] if not it["main"]}
    assert names == {f"idle-{number}" for number in range(4)}


def test_a_lock_of_an_object_that_keeps_a_thread_waiting_is_a_finding(
    tmp_path: Path, python: Python
) -> None:
    recording = parking(tmp_path, python, "object")
    finding = recording.finding("parked")
    assert (finding["cause"], finding["of"], finding["parks"]) == ("object", "Shared", TIMES)
    assert finding["wakers"] == [recording.process["pid"]]
    waits = place("kept_waiting.py", "waited_ns.append(parking.take(shared))")
    wakes = place("kept_waiting.py", "parking.hold(shared, HELD_MS)")
    said = f"for the lock of one Shared ({waits}, in 5 parks, mostly woken by MainThread ({wakes}"
    assert said in finding["text"]
    assert finding["frame"].endswith(waits)
    assert finding["waker_frame"].endswith(wakes)


def test_a_thread_that_takes_the_lock_of_an_object_twice_is_told_apart(
    tmp_path: Path, python: Python, ungil: RunUngil
) -> None:
    if python.version != (3, 13):
        pytest.skip("3.13 takes it twice when it first reads a dict of another thread")
    recording = trace(tmp_path, python.path, str(PROGRAMS / "first_gets.py"), "300")
    rows = [it for it in recording.process["parks"]["waits"] if it["name"] == "asks"]
    (own,) = [it for it in rows if it["cause"] == "object" and it["lock"] is None]
    (waker,) = own["wakers"]
    assert (waker["tid"], waker["count"]) == (own["tid"], own["count"])
    asks = place("first_gets.py", 'each.get("key")')
    # The thread also begins, with dicts of the main thread.
    (asked,) = [it for it in own["places"] if it["frame"].endswith(asks)]
    assert asked["count"] == 300
    shown = ungil("report", str(recording.path), env={**os.environ, "COLUMNS": "300"}).stdout
    assert "ended by the thread itself" in shown
    assert f"300 times at {asks[:-1]}" in shown


def test_a_pause_of_the_world_is_as_long_as_the_world_stood_still(
    tmp_path: Path, python: Python
) -> None:
    recording = parking(tmp_path, python, "pause")
    pause = parked(recording, "pause")
    assert_same_lengths(recording)
    pauses = recording.process["parks"]["pauses"]
    assert pauses["stopped_s"] == pytest.approx(pause["waited_s"], rel=0.02)
    assert pauses["count"] == TIMES
    assert pauses["collections"] == 0
    finding = recording.finding("world-pauses")
    assert finding["pauses"] == pauses["count"]
    assert finding["text"].startswith("the world was stopped ")


def test_pauses_of_collections_are_told_as_such(tmp_path: Path, python: Python) -> None:
    if python.version not in {(3, 13), (3, 14), (3, 15)}:
        pytest.skip("where a collection notes that it goes on is known of 3.13 and 3.14")
    recording = trace(tmp_path, python.path, str(PROGRAMS / "collecting.py"))
    pauses = recording.process["parks"]["pauses"]
    assert pauses["collections"] == pauses["count"] > 0
    finding = recording.finding("world-pauses")
    assert finding["text"].startswith("garbage collections stopped the world ")


def test_what_threads_wait_for_in_idleness_is_no_finding(tmp_path: Path, python: Python) -> None:
    recording = trace(tmp_path, python.path, str(PROGRAMS / "idle_pool.py"))
    assert {it["kind"] for it in recording.report["findings"]} == {"none"}
    parks = recording.process["parks"]
    idle = [thread for thread in parks["threads"] if not thread["main"]]
    assert len(idle) == 4
    assert all(sum(it["waited_s"] for it in thread["causes"]) > 0.5 for thread in idle)


def test_the_trace_file_has_the_parks_that_the_report_sums(tmp_path: Path, python: Python) -> None:
    recording = parking(tmp_path, python, "object")
    for thread in recording.process["parks"]["threads"]:
        (track,) = [it for it in recording.tracks if it.tid == thread["tid"]]
        lengths = [it.length_ns for it in track.parks]
        assert len(lengths) == sum(it["parks"]["count"] for it in thread["causes"])
        total_s = sum(it["waited_s"] for it in thread["causes"])
        assert sum(lengths) / 1e9 == pytest.approx(total_s)


def test_the_screen_shows_who_parked_for_what(
    tmp_path: Path, python: Python, ungil: RunUngil
) -> None:
    recording = parking(tmp_path, python, "object")
    shown = ungil("report", str(recording.path), env={**os.environ, "COLUMNS": "140"}).stdout
    assert "the lock of one Shared" in shown
    assert "not seen: locks that were free" in shown
    assert "pause" in shown


def test_with_its_gil_on_no_parks_are_recorded(tmp_path: Path, python: Python) -> None:
    assert traced(tmp_path, python, PYTHON_GIL="1").process["parks"] is None
