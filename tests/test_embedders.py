"""Real programs that load their Python later: uWSGI's plugin, and what PyInstaller makes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from suite import PATIENCE_S, PROGRAMS
from tracing import Recording, Running, trace

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

# uWSGI.


@pytest.fixture
def listening() -> Generator[socket.socket]:
    """A socket that is listening before the server is there, so that nobody waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def uwsgi(listening: socket.socket, *options: str) -> list[str]:
    """The words that serve `wsgi_app.py` on that socket."""
    words = ["uwsgi", "--plugin", "python3", "--http-socket", f"fd://{listening.fileno()}"]
    words += ["--wsgi-file", str(PROGRAMS / "wsgi_app.py"), "--need-app", "--die-on-term"]
    # With the plugin in another file there is nothing of Python in the program itself.
    return [*words, "--master", "--enable-threads", "--threads", "2", *options]


def ask(listening: socket.socket) -> tuple[int, str]:
    """The process that answers, and its control page."""
    port = listening.getsockname()[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as answer:
        pid, page = answer.read().decode().partition(" ")[::2]
    return int(pid), page


LAZY = pytest.mark.parametrize("options", [(), ("--lazy-apps",)], ids=["forked", "lazy"])


@LAZY
def test_uwsgi_is_recorded(
    tmp_path: Path, listening: socket.socket, options: tuple[str, ...]
) -> None:
    words = uwsgi(listening, *options)
    with Running(tmp_path, words, pass_fds=[listening.fileno()]) as running:
        pid, _ = ask(listening)
        running.signal_program(signal.SIGTERM)
        recording = running.finish()
    (worker,) = [it for it in recording.processes if it["pid"] == pid]
    assert worker["not_recorded"] is None
    (gil,) = worker["gils"]
    # The application, loaded in the worker or before it was forked, and its thread.
    assert gil["held_s"] > 0
    assert len(gil["threads"]) >= 2


@LAZY
def test_uwsgi_is_scheduled(
    ungil: RunUngil, start: Start, listening: socket.socket, options: tuple[str, ...]
) -> None:
    words = uwsgi(listening, *options)
    server = start("run", *words, pass_fds=[listening.fileno()])
    pid, page = ask(listening)
    assert page.startswith("/dev/shm/ungil-policy-")
    changed = ungil("policy", str(pid), "batch").stdout
    assert changed.startswith(f"process {pid}: batch, quantum 100 ms (was interactive, quantum 5")
    # The program that ungil has become: uWSGI's master.
    assert ungil("policy", str(server.pid), "--children").stdout.count("process ") >= 2
    server.send_signal(signal.SIGTERM)
    _, said = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0
    assert "ungil: " not in said


# PyInstaller: its loader opens libpython from a folder beside it, or from one that it unpacks.

SPEC = """
made = Analysis([{script!r}], excludes=["ssl", "sqlite3", "tkinter", "unittest", "pydoc"])
code = PYZ(made.pure)
EXE(code, made.scripts, made.binaries, made.datas, name="one-file")
folder = EXE(code, made.scripts, exclude_binaries=True, name="one-folder")
COLLECT(folder, made.binaries, made.datas, name="folder")
"""


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`frozen.py` as PyInstaller makes it, in both ways."""
    folder = tmp_path_factory.mktemp("frozen")
    spec = folder / "frozen.spec"
    spec.write_text(SPEC.format(script=str(PROGRAMS / "frozen.py")), encoding="utf-8")
    words = [sys.executable, "-m", "PyInstaller", "--log-level", "ERROR", "--noconfirm"]
    subprocess.run([*words, str(spec)], cwd=folder, check=True)
    dist = folder / "dist"
    return {"one-file": dist / "one-file", "one-folder": dist / "folder" / "one-folder"}


def check_frozen(recording: Recording) -> None:
    """The threads of `frozen.py` are there."""
    (process,) = [it for it in recording.processes if it["gils"]]
    (gil,) = process["gils"]
    workers = [thread for thread in gil["threads"] if not thread["main"]]
    assert len(workers) == 3
    assert all(worker["voluntary"] + worker["forced"] >= 20 for worker in workers)


# Both in one test: to freeze takes long, and each process of a parallel run would do it again.
def test_a_frozen_program_is_recorded_and_scheduled(
    ungil: RunUngil, tmp_path: Path, frozen: dict[str, Path]
) -> None:
    for program in frozen.values():
        check_frozen(trace(tmp_path, program))
        outcome = ungil("run", str(program))
        assert (outcome.returncode, outcome.stderr) == (0, "")
        assert outcome.stdout.startswith("3 /dev/shm/ungil-policy-"), outcome.stdout
        bare = subprocess.run([program], capture_output=True, text=True, check=True)
        assert bare.stdout == "3 \n"
