"""What findings say of real programs: which code kept the GIL, who called it, and what helps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pythons import Python, pythons
from suite import PROGRAMS
from tracing import Recording, Running, Track, compile_library, trace

PYTHONS_3 = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13")
# One without the symbols of most functions, and a new one.
SOME = pythons("3.11-debian", "3.13", since=(3, 8))
LET_GO = "Py_BEGIN_ALLOW_THREADS"


def native_hold_of(recording: Recording, tid: int) -> dict[str, Any]:
    """The finding that says that thread `tid` kept the GIL, be it with others in one function."""
    found = recording.report["findings"]
    (finding,) = [it for it in found if it["kind"] == "native-hold" and tid in it["threads"]]
    return finding


@pytest.mark.parametrize(
    ("python", "function", "callee", "native"),
    [
        *((python, "parse_line", "match", "re.Pattern.match (") for python in PYTHONS_3),
        *((python, "load", "JSONDecoder.raw_decode", "scanner_call (") for python in SOME),
        *((python, "rank", None, "builtins.sorted (") for python in SOME),
    ],
    ids=str,
)
def test_nobody_is_told_to_change_the_c_code_of_python(
    tmp_path: Path, python: Python, function: str, callee: str | None, native: str
) -> None:
    over = tmp_path / "over"

    def are_seen(tracks: list[Track]) -> bool:
        seen = [track for track in tracks if track.name == "calling"]
        return any(len(it.stacks) >= 20 and len(it.natives) >= 10 for it in seen)

    program = PROGRAMS / "calling.py"
    with Running(tmp_path, [python.path, program, function, over]) as running:
        running.wait_until(are_seen)
        over.touch()
        recording = running.finish()
    finding = native_hold_of(recording, recording.thread("calling")["tid"])
    advice: str = finding["advice"]
    assert LET_GO not in advice
    assert "less work at a time, or run it in another process" in advice
    assert f" {function} (programs/calling.py:" in finding["text"]
    assert finding["user_frame"].startswith(f"{function} ({program}:")
    if callee is None:
        assert finding["frame"] == finding["user_frame"]
    else:
        known = callee if python.version >= (3, 11) else callee.rsplit(".", maxsplit=1)[-1]
        assert finding["frame"].split()[0] == known
        assert f", called by {function} (programs/calling.py:" in finding["text"]
    # Debian's Python has no symbol for what is no method.
    named = (native, "a function in _json.") if python.name == "3.11-debian" else native
    assert advice.startswith(named)
    assert "keeps the GIL until it returns" in advice


@pytest.mark.parametrize("python", PYTHONS_3, ids=str)
def test_a_library_of_the_users_own_that_ctypes_keeps_the_gil_for_is_to_let_go(
    tmp_path: Path, python: Python
) -> None:
    library = compile_library(tmp_path)
    words = [python.path, PROGRAMS / "two_culprits.py", library, "120000", "5", "5"]
    recording = trace(tmp_path, *words)
    assert recording.process["libraries"] == [os.path.realpath(library)]
    finding = native_hold_of(recording, recording.told["tids"]["second"])
    # Where native code was not seen, it may be another library.
    assert "truth.so" in finding["advice"]
    assert "ctypes.CDLL" in finding["advice"]


def test_findings_name_the_process_where_there_are_several(tmp_path: Path) -> None:
    program = PROGRAMS / "keeping.py"
    python = pythons("3.11")[0]
    code = (
        "import subprocess, sys; "
        "[it.wait() for it in [subprocess.Popen([sys.executable, *sys.argv[1:]]) for _ in 'ab']]"
    )
    recording = trace(tmp_path, python.path, "-c", code, program, "5", "150000")
    kept = [it for it in recording.report["findings"] if it["kind"] == "native-hold"]
    assert len({it["pid"] for it in kept}) == 2
    for finding in kept:
        assert finding["text"].startswith(f"keeping.py (pid {finding['pid']}): thread keeping kept")


def test_where_reading_the_process_is_forbidden_the_report_says_so(tmp_path: Path) -> None:
    keeping = PROGRAMS / "keeping.py"
    # PR_SET_DUMPABLE: 0 forbids it to whoever lacks CAP_SYS_PTRACE.
    code = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "
        f"sys.argv[1:] = ['5', '150000']; exec(open({str(keeping)!r}).read())"
    )
    words = [pythons("3.11")[0].path, "-c", code]
    if os.geteuid() == 0:
        drop = "-sys_ptrace"
        command = ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}"]
        recording = trace(tmp_path, *words, before=command)
    else:
        recording = trace(tmp_path, *words)
    (native,) = [it for it in recording.report["findings"] if it["kind"] == "native-hold"]
    why = "the platform forbids reading the process"
    assert native["text"].endswith(f"; there is no stack: {why}")
    assert native["samples"] == 0
    contended = [it for it in recording.gil["long_holds"] if it["contended"]]
    assert why in {it["stack_missing"] for it in contended}
    (note,) = recording.report["notes"]
    assert note.startswith("thread names and the code of long holds are missing: ")
