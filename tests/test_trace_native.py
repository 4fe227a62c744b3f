"""Long holds come with the native function that kept the GIL, and the program does not notice."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from extensions import build_extension
from pythons import Python, pythons
from suite import PROGRAMS, filtered
from tracing import Recording, Running, Track

PROGRAM = PROGRAMS / "native_calls.py"
IS_X86 = platform.machine() == "x86_64"
WITHOUT_PTRACE = filtered("refused", "ptrace")
MISSING = "the native functions of long holds are missing: "
SAMPLES = 5
SET = ["set", "make_new_set"]
"""In some builds the second one is called in the place of what the type names."""


def sampled(tracks: list[Track]) -> bool:
    """Whether the Python stack of the thread that keeps the GIL was seen often enough."""
    return any(len(track.stacks) >= SAMPLES for track in tracks if track.name == "keeping")


def seen(tracks: list[Track], times: int = SAMPLES) -> bool:
    """Whether its native frames were."""
    return any(len(track.natives) >= times for track in tracks if track.name == "keeping")


def seen_in_several_holds(tracks: list[Track]) -> bool:
    """The first ones may all show where the thread was when a busy machine did not run it."""
    return seen(tracks, 6 * SAMPLES)


def record(
    folder: Path,
    which: str,
    until: Callable[[list[Track]], bool],
    python: str = sys.executable,
    options: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Recording:
    """Trace the program until that much was seen."""
    words = [python, PROGRAM, which, folder]
    with Running(folder, words, options, before, stdin=subprocess.PIPE) as running:
        running.wait_until(until)
        recording = running.finish()
    assert recording.status == 0, recording.stderr
    assert recording.told == {}, "a call went wrong"
    return recording


def natives_of(recording: Recording) -> list[dict[str, Any]]:
    """What the long holds of the thread that keeps the GIL say of native code."""
    tid = recording.thread("keeping")["tid"]
    natives = [it["native"] for it in recording.gil["long_holds"] if it["tid"] == tid]
    return [native for native in natives if native is not None]


@pytest.mark.parametrize("python", pythons("3.8", "3.11-debian", "3.13"), ids=str)
@pytest.mark.parametrize(("which", "names"), [("array", ["array.array"]), ("set", SET)])
def test_a_constructor_that_takes_long_is_named_by_its_type(
    tmp_path: Path, python: Python, which: str, names: list[str]
) -> None:
    natives = natives_of(record(tmp_path, which, seen_in_several_holds, python.path))
    named = sum(it["samples"] for it in natives if it["function"] in names)
    # The thread may be on its way from one object to the next.
    assert named > sum(it["looks"] for it in natives) / 2, json.dumps(natives)


@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.11-debian", "3.13"), ids=str)
def test_a_long_match_is_named_by_what_python_calls_it(tmp_path: Path, python: Python) -> None:
    recording = record(tmp_path, "match", seen, python.path)
    natives = natives_of(recording)
    matches = [native for native in natives if native["function"] == "re.Pattern.match"]
    # The thread may be on its way from one match to the next.
    tid = recording.thread("keeping")["tid"]
    looks = sum(it["native_looks"] for it in recording.gil["long_holds"] if it["tid"] == tid)
    assert sum(it["samples"] for it in matches) > 0.8 * looks
    for native in matches:
        assert Path(native["library"]).name.startswith(("python3", "libpython3"))
        assert 0 < native["samples"] <= native["looks"]
        assert native["stack"][-1].endswith(f"re.Pattern.match [{native['library']}]")
    stopped = recording.process["stopped"]
    assert stopped["times"] >= sum(it["samples"] for it in matches)
    assert 0 < stopped["p50_us"] <= stopped["max_us"] <= stopped["total_ms"] * 1e3


@pytest.mark.parametrize("python", pythons("3.8", "3.11", "3.11-debian", "3.13"), ids=str)
@pytest.mark.parametrize(("which", "name"), [("made", "run"), ("made_deep", "run_deep")])
def test_code_made_at_run_time_is_told_by_what_calls_it(
    tmp_path: Path, python: Python, which: str, name: str
) -> None:
    build_extension(tmp_path, python.path, "made_code")
    natives = natives_of(record(tmp_path, which, seen, python.path))
    assert natives
    for native in natives:
        assert native["library"] == str(tmp_path / "made_code.so"), native
        assert native["function"] in {f"made_code.{name}", name}, native
        assert native["innermost_library"] == "", native


def test_calls_that_wait_with_the_gil_are_seen_without_a_stop(tmp_path: Path) -> None:
    """A stop would end epoll_wait with EINTR."""
    recording = record(tmp_path, "waiting", seen)
    natives = natives_of(recording)
    # What ctypes called, and not ctypes itself.
    called = {it["function"].strip("_") for it in natives if it["function"] is not None}
    assert called & {"usleep", "poll", "epoll_wait", "select"}, natives
    assert any("libc" in Path(it["library"]).name for it in natives)


@pytest.mark.parametrize("which", ["sleeping", "littered"] if IS_X86 else ["sleeping"])
def test_who_calls_by_ctypes_with_the_gil_is_told_how_to_call_without_it(
    tmp_path: Path, ungil: Callable[..., subprocess.CompletedProcess[str]], which: str
) -> None:
    recording = record(tmp_path, which, seen_in_several_holds)
    tid = recording.thread("keeping")["tid"]
    found = [it for it in recording.report["findings"] if it["kind"] == "native-hold"]
    (finding,) = [it for it in found if it["threads"] == [tid]]
    assert finding["advice"].startswith("ctypes.PyDLL keeps the GIL while "), finding["advice"]
    assert "load its library with ctypes.CDLL" in finding["advice"]
    advice = json.loads(ungil("advise", str(recording.path), "--json").stdout)["advice"]
    (told,) = [it for it in advice if it["kind"] == "let-go"]
    assert told["text"].startswith("load libc.so.6 with ctypes.CDLL, which releases the GIL, for ")
    assert told["action"]["code"].startswith('library = ctypes.CDLL("libc.so.6")')


def test_the_trace_file_says_the_same_as_the_recorder(tmp_path: Path) -> None:
    recording = record(tmp_path, "match", seen)
    read = [sys.executable, "-m", "ungil", "report", str(recording.path), "--json"]
    report = json.loads(subprocess.run(read, check=True, capture_output=True, text=True).stdout)
    (process,) = report["processes"]
    assert process["stopped"] == recording.process["stopped"]
    holds = process["gils"][0]["long_holds"]
    assert [it["native"] for it in holds] == [it["native"] for it in recording.gil["long_holds"]]
    natives = [native for track in recording.tracks for native in track.natives]
    assert any("re.Pattern.match" in frames[-1] for frames in natives if frames)


def test_who_asks_for_no_native_frames_gets_none_and_no_thread_is_stopped(tmp_path: Path) -> None:
    recording = record(tmp_path, "match", sampled, options=["--no-native"])
    assert recording.process["stopped"] is None
    assert natives_of(recording) == []
    assert not [note for note in recording.report["notes"] if note.startswith(MISSING)]


def test_where_ptrace_is_refused_python_stacks_stay_and_the_reason_is_told_once(
    tmp_path: Path,
) -> None:
    recording = record(tmp_path, "match", sampled, before=WITHOUT_PTRACE)
    assert [note for note in recording.report["notes"] if note.startswith(MISSING)] == [
        MISSING + "the platform refuses ptrace (a seccomp profile, a security module, or another "
        "user's process)"
    ]
    assert natives_of(recording) == []
    assert any(it["stack"] for it in recording.gil["long_holds"])


@pytest.mark.parametrize("attempt", range(3))
def test_a_recorder_that_is_killed_leaves_no_thread_stopped(tmp_path: Path, attempt: int) -> None:
    words = [sys.executable, PROGRAM, "match"]
    with Running(tmp_path, words, stdin=subprocess.PIPE) as running:
        # It has been looked at, and will be again.
        running.wait_until(seen if attempt == 0 else sampled)
        os.kill(running.popen.pid, signal.SIGKILL)
        # The program goes on to its end.
        stdout, _ = running.popen.communicate()
    assert json.loads(stdout) == {}
