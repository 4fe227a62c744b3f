"""Long holds come with the native function that kept the GIL, and the program does not notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Running, trace

PROGRAM = PROGRAMS / "native_calls.py"
WITHOUT_PTRACE = [sys.executable, str(PROGRAMS / "without_ptrace.py")]
MISSING = "the native functions of long holds are missing: "


def native_of(recording: Recording) -> dict[str, Any]:
    """What the finding about the thread that keeps the GIL says of native code."""
    found = recording.finding("native-hold")
    assert found["threads"] == [recording.thread("keeping")["tid"]]
    native = found["native"]
    assert native is not None
    return native


@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.11-debian", "3.13"), ids=str)
def test_a_long_match_is_named_by_what_python_calls_it(tmp_path: Path, python: Python) -> None:
    recording = trace(tmp_path, python.path, PROGRAM, "match", "5")
    native = native_of(recording)
    assert native["function"] == "re.Pattern.match"
    library = Path(native["library"]).name
    assert library.startswith(("python3", "libpython3"))
    assert 0 < native["samples"] <= native["looks"]
    assert native["samples"] > native["looks"] / 2
    assert native["stack"][-1].endswith(f"re.Pattern.match [{native['library']}]")
    finding = recording.finding("native-hold")
    assert f"the native code is re.Pattern.match ({library})" in finding["text"]
    assert finding["advice"].startswith("re.Pattern.match")
    # Its Python line is told as before.
    assert "match (" in finding["text"]
    assert "called by match (programs/native_calls.py:" in finding["text"]
    stopped = recording.process["stopped"]
    assert stopped["times"] >= native["samples"]
    assert 0 < stopped["p50_us"] <= stopped["max_us"] <= stopped["total_ms"] * 1e3


def test_the_trace_file_says_the_same_as_the_recorder(tmp_path: Path) -> None:
    recording = trace(tmp_path, sys.executable, PROGRAM, "match", "3")
    read = [sys.executable, "-m", "ungil", "report", str(recording.path), "--json"]
    report = json.loads(subprocess.run(read, check=True, capture_output=True, text=True).stdout)
    (process,) = report["processes"]
    assert process["stopped"] == recording.process["stopped"]
    natives = [hold["native"] for hold in process["gils"][0]["long_holds"]]
    assert natives == [hold["native"] for hold in recording.gil["long_holds"]]
    assert any(natives)


def test_calls_that_wait_with_the_gil_are_named_and_not_interrupted(tmp_path: Path) -> None:
    """A thread that waits in the kernel is looked at where it is: epoll_wait would end with EINTR."""
    recording = trace(tmp_path, sys.executable, PROGRAM, "waiting", "5")
    assert recording.told == {}
    native = native_of(recording)
    assert "libc" in Path(native["innermost_library"]).name
    assert "ctypes" in Path(native["library"]).name or "ctypes" in (native["function"] or "")


def test_whoever_asks_for_none_gets_none_and_no_thread_is_stopped(tmp_path: Path) -> None:
    recording = trace(tmp_path, sys.executable, PROGRAM, "match", "3", options=["--no-native"])
    assert recording.process["stopped"] is None
    found = recording.finding("native-hold")
    assert found["native"] is None
    assert found["samples"] > 0
    assert not [note for note in recording.report["notes"] if note.startswith(MISSING)]


def test_where_ptrace_is_refused_python_stacks_stay_and_the_reason_is_told_once(
    tmp_path: Path,
) -> None:
    path, report = tmp_path / "a.pftrace", tmp_path / "a.json"
    traced = [*WITHOUT_PTRACE, sys.executable, "-m", "ungil", "trace", "-q", "-o", str(path)]
    program = [sys.executable, str(PROGRAM), "match", "5"]
    subprocess.run([*traced, "--json", str(report), "--", *program], check=True)
    told = json.loads(report.read_text(encoding="utf-8"))
    notes = [note for note in told["notes"] if note.startswith(MISSING)]
    assert notes == [
        MISSING + "the platform refuses ptrace (a seccomp profile, a security module, or another "
        "user's process)"
    ]
    (found,) = [it for it in told["findings"] if it["kind"] == "native-hold"]
    assert found["native"] is None
    assert found["samples"] > 0
    assert "match (programs/native_calls.py:" in found["text"]


@pytest.mark.parametrize("attempt", range(3))
def test_a_recorder_that_is_killed_leaves_no_thread_stopped(tmp_path: Path, attempt: int) -> None:
    with Running(tmp_path, [sys.executable, PROGRAM, "match", str(6 + attempt)]) as running:
        # It has been looked at, and will be again.
        running.wait_until(lambda tracks: any(track.stacks for track in tracks))
        os.kill(running.popen.pid, signal.SIGKILL)
        # The program goes on to its end, which closes its side.
        assert running.popen.stdout is not None
        assert json.loads(running.popen.stdout.read()) == {}
