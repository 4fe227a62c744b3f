"""A program in a container is looked at from outside: by the ids and the files of outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from suite import PATIENCE_S, PROGRAMS

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

# PID and mount namespaces of its own, as a container has.
APART = [
    "unshare",
    *(() if os.geteuid() == 0 else ("--map-root-user",)),
    *("--pid", "--fork", "--kill-child", "--mount", "--mount-proc"),
]
# Docker gives each container a /dev/shm of its own; the containers of a pod share one.
MEMORY = {"its own": 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "shared": 'exec "$@"'}
PROGRAM = [sys.executable, str(PROGRAMS / "contained.py")]
WORKERS = {"compute", "read"}


class Container:
    """A program in namespaces of its own, after what a shell does in them."""

    def __init__(self, start: Start, memory: str) -> None:
        words = [*APART, "sh", "-c", MEMORY[memory], "sh", *PROGRAM]
        self.process = start(args=words, stdin=subprocess.PIPE)
        assert self._said() == "ready 1"
        (self.pid,) = children(self.process.pid)

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def fork(self) -> int:
        """A child of the program, by its id outside."""
        assert self.process.stdin is not None
        before = children(self.pid)
        self.process.stdin.write("fork\n")
        self.process.stdin.flush()
        assert self._said() == "forked"
        (child,) = children(self.pid) - before
        return child

    def session(self) -> Path | None:
        """The folder of the recording that has the program's table, if there is one."""
        maps = Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        tables = [Path(line.split(maxsplit=5)[5]) for line in maps if "/ungil-session-" in line]
        names = {it.parent.name for it in tables}
        return Path(f"/proc/{self.pid}/root/dev/shm", names.pop()) if names else None


def children(pid: int) -> set[int]:
    return {int(it) for it in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def tids(pid: int) -> set[int]:
    return {int(it.name) for it in Path(f"/proc/{pid}/task").iterdir()}


def threads(process: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {it["name"]: it for gil in process["gils"] for it in gil["threads"]}


@pytest.fixture
def container(start: Start) -> Iterator[Callable[[str], Container]]:
    """Starts programs."""
    started: list[Container] = []

    def begin(memory: str) -> Container:
        started.append(Container(start, memory))
        return started[-1]

    yield begin
    for program in started:
        program.process.kill()


def recorded(start: Start, program: Container) -> tuple[int, dict[int, dict[str, Any]]]:
    """The processes of a recording, by their ids; which one was forked meanwhile."""
    words = ["--pid", str(program.pid), "--json", "-", "-q", "-f", "-o", "t.pftrace"]
    recorder = start("trace", *words)
    while (session := program.session()) is None:
        assert recorder.poll() is None
    child = program.fork()
    while len(list(session.glob("*-0"))) < 2:
        assert recorder.poll() is None
    recorder.send_signal(signal.SIGINT)
    told, said = recorder.communicate(timeout=PATIENCE_S)
    assert (recorder.returncode, said) == (0, "")
    assert program.session() is None
    assert not session.exists()
    return child, {it["pid"]: it for it in json.loads(told)["processes"]}


@pytest.mark.parametrize("memory", MEMORY)
def test_a_running_container_and_its_new_children_are_recorded_by_the_ids_of_outside(
    start: Start, container: Callable[[str], Container], memory: str
) -> None:
    program = container(memory)
    while True:
        child, processes = recorded(start, program)
        assert set(processes) == {program.pid, child}
        assert processes[program.pid]["parent_pid"] == program.process.pid
        assert processes[child]["parent_pid"] == program.pid
        for pid, process in processes.items():
            workers = [it for name, it in threads(process).items() if name in WORKERS]
            assert {it["tid"] for it in workers} <= tids(pid) - {pid}
        # A busy machine may leave no time to a thread meanwhile.
        if compute := threads(processes[program.pid]).get("compute"):
            break
    # The kernel tells that of its own ids only.
    assert compute["cpu_s"] > 0


def test_a_program_that_is_started_in_a_container_is_recorded_by_the_ids_of_outside(
    ungil: Run, tmp_path: Path
) -> None:
    code = (
        "import os, threading\n"
        "thread = threading.Thread(target=sorted, args=(range(10 ** 6),), name='sorts')\n"
        "thread.start(); thread.join()\n"
        "print(os.readlink('/proc/self'))"
    )
    words = ["trace", "-q", "--json", "report.json", *APART, sys.executable, "-c", code]
    outcome = ungil(*words)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "1\n", "")
    (process,) = json.loads((tmp_path / "report.json").read_text())["processes"]
    assert process["pid"] > 1
    assert process["parent_pid"] > 1
    found = threads(process)
    assert found["MainThread"]["tid"] == process["pid"]
    assert {it["main"] for name, it in found.items() if name != "MainThread"} == {False}


@pytest.mark.parametrize("memory", MEMORY)
def test_who_looks_at_a_container_sees_the_ids_of_outside(
    ungil: Run, container: Callable[[str], Container], memory: str
) -> None:
    program = container(memory)
    dump = ungil("dump", str(program.pid), "--json")
    assert dump.returncode == 0, dump.stderr
    (found,) = json.loads(dump.stdout)["processes"]
    assert found["pid"] == program.pid
    assert {it["tid"] for it in found["threads"]} == tids(program.pid)
    cpu = None
    # On a busy machine the first look may fail, and then nothing is known of the time between two.
    while cpu is None:
        top = ungil("top", str(program.pid), "--once", "--json")
        assert top.returncode == 0, top.stderr
        (found,) = json.loads(top.stdout)["processes"]
        rows = {it["name"]: it for it in found["threads"]}
        assert {it["tid"] for it in rows.values()} == tids(program.pid)
        cpu = rows["compute"]["cpu"]
    # The kernel tells that of its own ids only.
    assert cpu > 0
    assert program.session() is None


def test_a_container_without_room_for_the_buffers_is_told_what_it_needs(
    ungil: Run, start: Start
) -> None:
    full = " && ".join(
        [
            "mount -t tmpfs -o size=1m tmpfs /dev/shm",
            # The program may be in one of them.
            *(
                f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
                for folder in ("/tmp", "/var/tmp")
            ),
        ]
    )
    words = [*APART, "sh", "-c", f'{full} && exec "$@"', "sh", *PROGRAM]
    process = start(args=words, stdin=subprocess.PIPE, cwd="/")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready 1\n"
    (pid,) = children(process.pid)
    outcome = ungil("trace", "--pid", str(pid), "--for", "1s", "-q")
    assert outcome.returncode == 2
    assert outcome.stderr == (
        f"ungil: process {pid} cannot be recorded: there is no room for the recording's buffers "
        "where it sees other files than ungil (/dev/shm: 1 MiB free; /tmp: read-only file "
        "system; /var/tmp: read-only file system); mount a tmpfs of 32 MiB or more there, such as "
        "at /dev/shm\n"
    )
    process.kill()


def test_a_flight_recorder_of_a_container_is_asked_by_either_id(
    ungil: Run, start: Start, container: Callable[[str], Container], tmp_path: Path
) -> None:
    program = container("its own")
    words = ["--last", "10s", "-o", "t.pftrace", "--pid", str(program.pid), "-q"]
    recorder = start("trace", *words)
    while program.session() is None:
        assert recorder.poll() is None
    for pid in (program.pid, recorder.pid):
        outcome = ungil("snapshot", str(pid))
        assert outcome.returncode == 0, outcome.stderr
    recorder.send_signal(signal.SIGINT)
    recorder.wait(timeout=PATIENCE_S)
    report = ungil("report", "--json", str(next(tmp_path.glob("t*.pftrace"))))
    (process,) = json.loads(report.stdout)["processes"]
    assert process["pid"] == program.pid
