"""`ungil run` of a program that is no Python: in the end it says if no GIL was scheduled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

PYTHON = f"{sys.executable} -c 1"


def line(name: str) -> str:
    """What it says about a program of that name."""
    return (
        f"ungil: no GIL was scheduled: neither {name} nor a program that it started has loaded a "
        "Python that ungil can schedule\n"
    )


@pytest.mark.parametrize("name", ["sh", "bash"])
@pytest.mark.parametrize("code", ["exit 7", "ls / >/dev/null; exit 7", "/nonexistent; exit 7"])
def test_a_program_without_a_python_says_so(ungil: RunUngil, name: str, code: str) -> None:
    outcome = ungil("run", name, "-c", code)
    assert (outcome.returncode, outcome.stdout) == (7, "")
    # A shell has something to say about what it does not find.
    assert outcome.stderr.endswith(line(name))
    assert outcome.stderr.count("ungil: ") == 1


@pytest.mark.parametrize(
    "code",
    [
        f"{PYTHON}; exit 7",
        f"({PYTHON}; true); exit 7",
        f"sh -c '{PYTHON}; true'; exit 7",
        f"exec {sys.executable} -c 'raise SystemExit(7)'",
        f"{PYTHON}; exec sh -c 'exit 7'",
    ],
)
def test_one_that_starts_a_python_says_nothing(ungil: RunUngil, code: str) -> None:
    outcome = ungil("run", "bash", "-c", code)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (7, "", "")


def test_one_that_becomes_another_program_says_it_there(ungil: RunUngil) -> None:
    outcome = ungil("run", "bash", "-c", "exec sh -c :")
    assert outcome.stderr == line("sh")


def test_a_child_says_nothing(ungil: RunUngil) -> None:
    outcome = ungil("run", "bash", "-c", f"bash -c : ; {PYTHON}")
    assert outcome.stderr == ""


def test_it_is_not_written_into_another_file(ungil: RunUngil, tmp_path: Path) -> None:
    outcome = ungil("run", "bash", "-c", f"exec 2>{tmp_path}/file")
    assert outcome.stderr == ""
    assert (tmp_path / "file").read_bytes() == b""
    assert ungil("run", "bash", "-c", f"exec 2>&- 3>{tmp_path}/file").stderr == ""
    assert (tmp_path / "file").read_bytes() == b""


def marks(pid: int) -> list[Path]:
    """The marks of a process."""
    return list(Path("/dev/shm").glob(f"ungil-run-*-{pid}"))


def test_nothing_is_left_of_it(start: Start) -> None:
    for code in (":", PYTHON):
        process = start("run", "bash", "-c", f"read line; {code}; true", stdin=subprocess.PIPE)
        process.communicate("\n")
        assert process.returncode == 0
        assert marks(process.pid) == []


def test_one_that_was_killed_says_nothing(ungil: RunUngil, start: Start) -> None:
    process = start("run", "bash", "-c", "echo; read line", stdin=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    assert len(marks(process.pid)) == 1
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert said == ""
    ungil("run", "true")
    assert marks(process.pid) == []


def test_variables_for_elsewhere_ask_for_no_word(ungil: RunUngil) -> None:
    lines = ungil("run", "--env").stdout.splitlines()
    assert {it.partition("=")[0] for it in lines} == {"LD_PRELOAD", "UNGIL_POLICY"}
    variables = dict(it.split("=", 1) for it in lines)
    done = subprocess.run(
        ["bash", "-c", ":"], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
