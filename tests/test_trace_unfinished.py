"""A trace whose recorder was killed is found and read, and what else it left is removed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from process_groups import program_of
from suite import PROGRAMS
from tracing import Running

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def killed(tmp_path: Path, ungil: Run) -> Generator[dict[str, Any]]:
    """A recorder that was killed at work: its session, its program, what was reported before."""
    code = (
        "import os, sys, threading, time\n"
        "def work():\n"
        "    while True: sum(range(1000))\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "print(os.environ['UNGIL_SESSION'], flush=True)\n"
        "time.sleep(1000)\n"
    )
    with Running(tmp_path, [sys.executable, "-c", code]) as running:
        session = Path(running.read_line())
        running.wait_until(lambda tracks: len(tracks) == 3)
        during = ungil("report", running.path.name, "--json")
        program = program_of(running.popen.pid)
        running.popen.kill()
        running.popen.wait()
        yield {"session": session, "during": during, "program": program}
        os.kill(program, signal.SIGKILL)


def test_what_a_killed_recorder_has_written_is_found_by_the_name_of_the_trace(
    ungil: Run, tmp_path: Path, killed: dict[str, Any]
) -> None:
    outcome = ungil("report", "trace.pftrace", "--json")
    assert outcome.returncode == 0
    (place,) = tmp_path.glob(".trace.pftrace.*.tmp")
    said = f"ungil: there is no 'trace.pftrace'; this is the unfinished {place.name!r}\n"
    assert outcome.stderr == said
    report = json.loads(outcome.stdout)
    (process,) = report["processes"]
    assert process["pid"] == killed["program"]
    assert len(process["gils"][0]["threads"]) == 3
    note = f"the trace ends after {report['duration_s']:.1f} s: its recorder was killed"
    assert report["notes"][0] == note
    # The same for people, and by its own name.
    outcome = ungil("report", place.name)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert f"note: {note}" in outcome.stdout


def test_a_trace_that_is_being_recorded_can_be_read(killed: dict[str, Any]) -> None:
    outcome = killed["during"]
    assert outcome.returncode == 0
    assert json.loads(outcome.stdout)["notes"][0].endswith(": it is still being recorded")


def test_beside_a_newer_trace_the_one_of_a_killed_recorder_is_named(
    ungil: Run, tmp_path: Path, killed: dict[str, Any]
) -> None:
    assert ungil("trace", "-q", "-o", "trace.pftrace", "-c", "pass").returncode == 0
    outcome = ungil("report", "trace.pftrace", "--json")
    (place,) = tmp_path.glob(".trace.pftrace.*.tmp")
    assert outcome.stderr == f"ungil: killed recorders also left: {place.name!r}\n"
    assert json.loads(outcome.stdout)["notes"] == []


def test_a_trace_cut_anywhere_is_read_as_far_as_it_goes(ungil: Run, tmp_path: Path) -> None:
    words = [sys.executable, str(PROGRAMS / "short_threads.py"), "2000", "4", "200"]
    assert ungil("trace", "-q", "-o", "whole", *words).returncode == 0
    whole = (tmp_path / "whole").read_bytes()
    last = -1.0
    for part in (0.3, 0.6, 0.9, 1):
        (tmp_path / "cut").write_bytes(whole[: int(len(whole) * part)])
        outcome = ungil("report", "cut", "--json")
        assert (outcome.returncode, outcome.stderr) == (0, "")
        report = json.loads(outcome.stdout)
        told = [it for it in report["notes"] if it.startswith("the trace ends after ")]
        assert len(told) == (part < 1)
        assert report["duration_s"] >= last
        last = report["duration_s"]
        assert ungil("report", "cut").returncode == 0


# Sessions.


def test_the_next_ungil_removes_what_a_killed_recorder_left_and_no_more(
    tmp_path: Path, ungil: Run, killed: dict[str, Any]
) -> None:
    code = "import os; print(os.environ['UNGIL_SESSION'], flush=True); input()"
    with Running(tmp_path, [sys.executable, "-c", code], stdin=subprocess.PIPE) as other:
        living = Path(other.read_line())
        # It was the next one.
        assert not killed["session"].exists()
        assert ungil("trace", "-q", "-c", "pass").returncode == 0
        assert ungil("doctor", "--clean").returncode == 0
        assert living.is_dir()
        assert other.popen.stdin is not None
        print(file=other.popen.stdin, flush=True)
        other.finish(printed=str(living))
    assert not living.exists()


@pytest.fixture
def abandoned(tmp_path: Path, environment: dict[str, str]) -> Path:
    """What a killed recorder leaves, in a temporary folder that no other test cleans up."""
    environment["TMPDIR"] = str(tmp_path)
    session = tmp_path / "ungil-session-abandoned"
    session.mkdir()
    (session / "1-0").write_bytes(bytes(3 << 20))
    return session


def test_the_doctor_removes_it_too_and_says_so(ungil: Run, abandoned: Path) -> None:
    outcome = ungil("doctor", "--clean")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert f"removed {abandoned}, 3.0 MiB" in outcome.stdout.splitlines()
    assert not abandoned.exists()
    assert str(abandoned) not in ungil("doctor", "--clean").stdout


def test_the_doctor_says_what_it_removed_to_a_machine(ungil: Run, abandoned: Path) -> None:
    outcome = ungil("doctor", "--clean", "--json")
    removed = json.loads(outcome.stdout)["removed"]
    assert {"path": str(abandoned), "bytes": 3 << 20} in removed
    assert not abandoned.exists()


def test_what_somebody_still_uses_is_not_removed(ungil: Run, abandoned: Path) -> None:
    descriptor = os.open(abandoned, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert str(abandoned) not in ungil("doctor", "--clean").stdout
    assert abandoned.exists()
    os.close(descriptor)
    assert str(abandoned) in ungil("doctor", "--clean").stdout


def test_who_cleans_up_tries_no_interpreter(ungil: Run) -> None:
    outcome = ungil("doctor", "--clean", "python3")
    said = "ungil: --clean tries no interpreter; leave out 'python3'\n"
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (2, "", said)


def test_the_program_goes_on_when_its_recorder_is_killed_and_its_session_removed(
    tmp_path: Path, ungil: Run
) -> None:
    code = (
        "import os, threading\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "if os.fork() == 0:\n"
        "    t = threading.Thread(target=print, args=('child',)); t.start(); t.join()\n"
        "    raise SystemExit\n"
        "os.wait()\n"
    )
    with Running(tmp_path, [sys.executable, "-c", code], stdin=subprocess.PIPE) as running:
        assert running.read_line() == "ready"
        running.popen.kill()
        running.popen.wait()
        assert ungil("doctor", "--clean").returncode == 0
        assert running.popen.stdin is not None
        print(file=running.popen.stdin, flush=True)
        assert {running.read_line(), running.read_line()} == {"thread", "child"}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of a trace."""
    whole = tmp_path_factory.mktemp("cut") / "whole.pftrace"
    program = [sys.executable, str(PROGRAMS / "compared.py"), "0.5", "convoy"]
    subprocess.run(
        [sys.executable, "-m", "ungil", "trace", "-q", "-o", str(whole), *program], check=True
    )
    content = whole.read_bytes()
    beginning = whole.with_name("cut.pftrace")
    beginning.write_bytes(content[:-200])
    return beginning


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "FILE"),
        ("advise", "FILE", "--json"),
        ("simulate", "FILE", "--policy", "fair"),
        ("simulate", "FILE", "--policy", "fair", "--json"),
        ("report", "FILE", "--sql", "SELECT * FROM threads"),
        *(
            ("export", "FILE", "--format", name, "-o", "out")
            for name in ("firefox", "speedscope", "collapsed", "sqlite")
        ),
    ],
)
def test_every_reader_of_a_trace_that_was_cut_off_says_where_it_ends(
    ungil: Run, cut: Path, words: tuple[str, ...]
) -> None:
    note = json.loads(ungil("report", str(cut), "--json").stdout)["notes"][0]
    assert note.startswith("the trace ends after ")
    outcome = ungil(*(str(cut) if word == "FILE" else word for word in words))
    assert outcome.returncode == 0, outcome.stderr
    assert f"ungil: {note}\n" in outcome.stderr
    if words[0] == "simulate" and "--json" in words:
        assert json.loads(outcome.stdout)["predictions"][0]["notes"][0] == note
