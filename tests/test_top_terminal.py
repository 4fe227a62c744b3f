"""`ungil top` in a terminal: it begins, it ends, and leaves the process as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from looking import Start, is_left, running
from process_groups import program_of
from suite import PATIENCE_S
from terminals import Terminal

from ungil import _native

Run = Callable[..., subprocess.CompletedProcess[str]]


def on_screen(start: Start, environment: dict[str, str], *words: str) -> Terminal:
    """`ungil top` in the foreground of a terminal."""
    command = [sys.executable, "-m", "ungil", "top", *words]
    environment = environment | {"TERM": "xterm-256color"}
    return Terminal(command, start, columns=80, env=environment)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Until something is so that will be."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it never was"
        time.sleep(0.01)


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_it_ends_with_a_key_and_leaves_the_process(
    start: Start, environment: dict[str, str], key: bytes
) -> None:
    pid = running(start, "taking")
    terminal = on_screen(start, environment, str(pid), "--interval", "0.2")
    terminal.read_until("handoffs/s")
    assert not is_left(pid)
    terminal.type(key)
    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen
    assert is_left(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_it_leaves_the_process(
    start: Start, environment: dict[str, str], number: signal.Signals
) -> None:
    pid = running(start, "computing")
    terminal = on_screen(start, environment, str(pid), "--interval", "0.2")
    terminal.read_until("handoffs/s")
    os.kill(program_of(terminal.login.pid), number)
    terminal.end()
    assert is_left(pid)


def test_killed_in_the_middle_it_does_no_harm(
    ungil: Run, start: Start, environment: dict[str, str]
) -> None:
    pid = running(start, "computing")
    terminal = on_screen(start, environment, str(pid), "--interval", "0.2")
    terminal.read_until("handoffs/s")
    os.kill(program_of(terminal.login.pid), signal.SIGKILL)
    terminal.end()
    ran_before = _ran(pid)
    wait_until(lambda: _ran(pid) > ran_before)
    outcome = ungil("dump", str(pid))
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert is_left(pid)


def _ran(pid: int) -> int:
    """For how many ticks a process has run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_policy_is_taken_back_at_the_end(start: Start, environment: dict[str, str]) -> None:
    pid = running(start, "computing")
    terminal = on_screen(start, environment, str(pid), "--interval", "0.2")
    terminal.read_until("handoffs/s")
    terminal.type(b"p")
    terminal.read_until("Escape cancels")
    terminal.type(b"\x1b[B\r")
    wait_until(lambda: _policy(pid) == "interactive")
    terminal.read_until("ago")
    terminal.type(b"q")
    assert terminal.end() == 0
    assert f"to use interactive again: ungil policy {pid} interactive" in terminal.seen
    assert _policy(pid) in (None, "stock")
    assert is_left(pid)


def _policy(pid: int) -> str | None:
    try:
        return _native.process_policy(pid)[0]
    except (OSError, RuntimeError):
        return None


def test_the_end_of_the_process_is_said(start: Start, environment: dict[str, str]) -> None:
    pid = running(start, "computing")
    terminal = on_screen(start, environment, str(pid), "--interval", "0.2")
    terminal.read_until("handoffs/s")
    os.kill(pid, signal.SIGKILL)
    terminal.read_until("ended")
    terminal.type(b"q")
    assert terminal.end() == 0


def test_a_refusal_is_a_sentence_and_no_screen(start: Start, environment: dict[str, str]) -> None:
    terminal = on_screen(start, environment, "2147483647")
    assert terminal.end() == 2
    assert terminal.seen.strip() == "ungil: there is no process 2147483647"


def test_without_textual_it_says_how_to_install_it(
    start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError(name='textual')")
    path = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    terminal = on_screen(start, environment | {"PYTHONPATH": path}, "4711")
    assert terminal.end() == 2
    assert terminal.seen.replace("\r\n", " ").strip() == (
        "ungil: ungil top needs textual: pip install 'ungil[top]'; "
        "ungil dump PID and ungil top PID --once do without it"
    )
