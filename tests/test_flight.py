"""`ungil trace --last`: what is kept, when it is written, and what is in it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from process_groups import program_of
from suite import PATIENCE_S, PROGRAMS, run_python
from tracing import Slice, Track, compile_library, read_tracks

from ungil import _native

SECOND_NS = 10**9
# Long enough to be waited for, and to be looked at, on a busy machine.
STALL_MS = 1_000
STALLS = PROGRAMS / "stalls.py"
(NUMBER,) = [
    number
    for number, line in enumerate(STALLS.read_text(encoding="utf-8").splitlines(), 1)
    if "# the line" in line
]
LINE = re.compile(rf"stall \(.*stalls\.py:{NUMBER}\)")


class Flying:
    """`stalls.py` under a flight recorder."""

    def __init__(self, folder: Path, *options: str, busy: int = 1) -> None:
        command = [sys.executable, "-m", "ungil", "trace", "--last", *options]
        command += ["--", str(STALLS), str(compile_library(folder)), str(busy)]
        self.popen = subprocess.Popen[str](
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._line(self.popen.stdout) == "ready"

    def __enter__(self) -> Flying:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.communicate()

    @staticmethod
    def _line(stream: Any) -> str:
        return stream.readline().rstrip("\n")

    def tell(self, line: object) -> None:
        """A line for the program."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(f"{line}\n")
        self.popen.stdin.flush()

    def printed(self) -> Any:
        """What the program prints next."""
        return json.loads(self._line(self.popen.stdout))

    def stall(self, milliseconds: int = STALL_MS) -> tuple[int, int]:
        """Let it keep the GIL for so long; when it did."""
        self.tell(milliseconds)
        began, ended = self.printed()
        return began, ended

    def said(self) -> str:
        """What ungil says next."""
        return self._line(self.popen.stderr)

    def finish(self) -> str:
        """Let the program end, as it does without ungil; what ungil has said since."""
        _, said = self.popen.communicate(timeout=PATIENCE_S)
        assert self.popen.returncode == 0, said
        return said


def snapshot(*words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `ungil snapshot`."""
    done = run_python("-m", "ungil", "snapshot", *words)
    assert done.returncode == status, done.stderr
    return done


def report(path: Path) -> dict[str, Any]:
    """The report of a snapshot."""
    return json.loads(_native.read_trace(str(path), 20.0))


def held_in(tracks: list[Track], began: int, ended: int) -> list[tuple[Track, Slice]]:
    """Who held the GIL all this time."""
    holds = [(track, it) for track in tracks for it in track.of("hold")]
    return [it for it in holds if it[1].start_ns <= began and ended <= it[1].end_ns]


def test_each_stall_is_in_a_snapshot_with_the_time_before_it_the_holder_and_its_line(
    tmp_path: Path,
) -> None:
    with Flying(tmp_path, "3s", "--on", "wait>200ms") as flying:
        ready_ns = time.monotonic_ns()
        for number in range(1, 6):
            began, ended = flying.stall()
            said = flying.said()
            assert said.startswith(f"ungil: ungil-stalls-{number}.pftrace: busy-0 waited "), said
            assert "MainThread held the GIL at" in said
            assert LINE.search(said), said
            path = tmp_path / f"ungil-stalls-{number}.pftrace"
            tracks = read_tracks(path)
            ((holder, _),) = held_in(tracks, began, ended)
            assert holder.name == "MainThread"
            assert any(LINE.fullmatch(stack[0]) for stack in holder.stacks)
            busy = next(track for track in tracks if track.name == "busy-0")
            assert any(it.length_ns > 200_000_000 for it in busy.of("wait"))
            start_ns, end_ns, *_ = _native.trace_span(str(path))
            assert start_ns <= max(began - SECOND_NS, ready_ns)
            assert end_ns >= ended
            notes = report(path)["notes"]
            assert any("this is a snapshot of the last" in it for it in notes), notes
        assert "5 snapshots written" in flying.finish()


def test_a_stall_that_goes_on_is_written_while_it_does(tmp_path: Path) -> None:
    with Flying(tmp_path, "30s", "--on", "wait>100ms") as flying:
        flying.tell(30_000)
        said = flying.said()
        assert re.search(r"busy-0 waited .* so far, MainThread held the GIL at", said), said
        (process,) = report(tmp_path / "ungil-stalls-1.pftrace")["processes"]
        longest = max(process["gils"][0]["long_holds"], key=lambda it: it["duration_ms"])
        assert longest["name"] == "MainThread"
        assert longest["duration_ms"] > 1_000


def test_a_hold_is_limited_although_nobody_waits_for_it(tmp_path: Path) -> None:
    with Flying(tmp_path, "1s", "--on", "hold>200ms", busy=0) as flying:
        flying.stall()
        said = flying.said()
        assert re.search(r"MainThread held the GIL for .* at stall \(", said), said


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_snapshot_that_could_not_be_written_is_told_of(tmp_path: Path, quiet: list[str]) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    output = ["-o", str(folder / "a.pftrace")]
    with Flying(tmp_path, "3s", "--on", "wait>200ms", *output, *quiet) as flying:
        folder.rmdir()
        flying.stall()
        said = flying.said()
        assert said.startswith("ungil: cannot write a snapshot: "), said
        end = "" if quiet else "ungil: no snapshot was written: 1 attempt failed\n"
        assert flying.finish() == end


def test_only_the_newest_files_stay_and_those_of_others_are_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "ungil-stalls-2.pftrace"
    theirs.write_text("theirs")
    with Flying(tmp_path, "1s", "--on", "wait>200ms", "--max-files", "2") as flying:
        for _ in range(4):
            flying.stall()
            flying.said()
        assert "4 snapshots written, the newest 2 kept;" in flying.finish()
    left = sorted(it.name for it in tmp_path.glob("*.pftrace"))
    assert left == [f"ungil-stalls-{number}.pftrace" for number in (2, 4, 5)]
    assert theirs.read_text() == "theirs"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_signal_to_ungil_asks_for_a_snapshot_and_does_not_reach_the_program(
    tmp_path: Path,
) -> None:
    with Flying(tmp_path, "30s", "-o", "night.pftrace") as flying:
        began, ended = flying.stall(100)
        os.kill(flying.popen.pid, signal.SIGUSR2)
        assert re.fullmatch(r"ungil: night-1\.pftrace: as asked; the last [\d.]+ s", flying.said())
        assert held_in(read_tracks(tmp_path / "night-1.pftrace"), began, ended)
        # It would have died by it.
        flying.stall(1)
        flying.finish()


def test_a_program_and_its_recorder_can_be_asked_for_by_their_process_ids(tmp_path: Path) -> None:
    with Flying(tmp_path, "30s") as flying:
        began, ended = flying.stall(100)
        for pid in (flying.popen.pid, program_of(flying.popen.pid)):
            path = tmp_path / f"{pid}.pftrace"
            told = json.loads(snapshot(str(pid), "-o", path, "--json").stdout)
            assert (told["path"], told["asked"]) == (str(path), True)
            assert held_in(read_tracks(path), began, ended)
            assert flying.said().startswith(f"ungil: {pid}.pftrace: as asked")
        again = snapshot(str(pid), "-o", path, status=2)
        assert "exists; name another file with -o" in again.stderr


def test_forked_children_are_in_it(tmp_path: Path) -> None:
    with Flying(tmp_path, "30s", "--on", "wait>200ms") as flying:
        flying.tell("fork")
        child = flying.printed()
        began, ended = flying.stall()
        assert "MainThread held the GIL at stall" in flying.said()
        path = tmp_path / "ungil-stalls-1.pftrace"
        ((holder, _),) = held_in(read_tracks(path), began, ended)
        assert holder.pid == child
        assert len(report(path)["processes"]) == 2
        assert "as asked" in snapshot(str(child)).stdout


def test_who_is_not_recorded_by_a_flight_recorder_is_told_what_to_do() -> None:
    done = snapshot(str(os.getpid()), status=2)
    assert "start the program with `ungil trace --last 30s PROGRAM`" in done.stderr
    assert "Traceback" not in done.stderr
    assert "standard output" in snapshot(str(os.getpid()), "-o", "-", status=2).stderr
    gone = snapshot("2147483647", status=2)
    assert gone.stderr == "ungil: there is no process 2147483647\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--on", "wait>50ms"], "--on needs --last"),
        (["--max-files", "3"], "--max-files needs --last"),
        (["--last", "30"], "--last: '30' is not a duration; write a number and its unit"),
        (["--last", "0s"], "--last: '0s' is not above zero"),
        (["--last", "1s", "--on", "wait>50"], "--on 'wait>50': '50' is not a duration"),
        (["--last", "1s", "--on", "waits>5ms"], "--on 'waits>5ms' is not a condition"),
        (["--last", "1s", "--on", "wait<5ms"], "--on 'wait<5ms' is not a condition"),
        (["--last", "1s", "--on", "hold>0ms"], "--on 'hold>0ms': '0ms' is not above zero"),
        (["--last", "1s", "--max-files", "0"], "--max-files '0' is not a number of files"),
        (["--last", "1s", "--json", "-"], "--json cannot be combined with --last"),
        (["--last", "1s", "--force"], "--force cannot be combined with --last"),
        (["--last", "1s", "-o", "/nowhere/x"], "cannot write snapshots to '/nowhere'"),
    ],
)
def test_wrong_options_get_a_sentence(options: list[str], sentence: str) -> None:
    done = run_python("-m", "ungil", "trace", *options, "-c", "print('it ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
