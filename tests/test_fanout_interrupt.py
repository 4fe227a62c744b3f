"""Ctrl-C: in a program that fans out, and in `ungil fanout`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from process_groups import wait_until_nobody_is_left_of
from terminals import Start, Terminal

from ungil.fanout import Backoff, Outcome, Stopped, fanout

LOOPS = ["lean", "asyncio", "uvloop"]

# Says which items run, and what becomes of them.
COROUTINES = """\
import asyncio, sys
if sys.argv[1] == "asyncio":
    sys.modules["uvloop"] = None
from ungil.fanout import fanout, Fanout, sleep
mode = "lean" if sys.argv[1] == "lean" else "asyncio"

async def work(item):
    print("begins", item, flush=True)
    try:
        await sleep(1000)
    finally:
        await sleep(0.01)
        print("cleaned up", item, flush=True)

def call():
    for outcome in fanout(work, range(100), limit=3, mode=mode, progress=lambda _: None):
        print("came", outcome, flush=True)

async def stream():
    async with Fanout(limit=3, mode=mode) as f:
        async for outcome in f.stream(work, range(100)):
            print("came", outcome, flush=True)

try:
    call() if sys.argv[2] == "call" else asyncio.run(stream())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def lines_until(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def program(*words: str, start: Start) -> subprocess.Popen[str]:
    return start(args=[sys.executable, "-c", *words])


@pytest.mark.parametrize(
    ("mode", "way"),
    [*((mode, "call") for mode in LOOPS), ("asyncio", "stream"), ("uvloop", "stream")],
)
def test_an_interrupt_cancels_coroutines_and_lets_them_clean_up(
    mode: Any, way: str, start: Start
) -> None:
    process = program(COROUTINES, mode, way, start=start)
    assert lines_until(process, 3) == ["begins 0", "begins 1", "begins 2"]
    wait_until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    cleaned = [f"cleaned up {n}" for n in range(3)]
    assert sorted(stdout.splitlines()) == [*cleaned, "interrupted"]
    assert stdout.endswith("interrupted\n")
    assert (stderr, process.returncode) == ("", 0)


THREADS = """\
import os, sys
from ungil.fanout import fanout
def work(item):
    print("begins", item, flush=True)
    sys.stdin.readline()
    print("ends", item, flush=True)
try:
    list(fanout(work, range(100), limit=1))
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""


def test_an_interrupt_waits_for_threads_and_a_second_one_does_not(start: Start) -> None:
    process = start(args=[sys.executable, "-c", THREADS], stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert lines_until(process, 1) == ["begins 0"]
    process.send_signal(signal.SIGINT)
    # Not before the interrupt has arrived, and that cannot be seen from here but by its effect.
    wait_until_pending_signals_are_gone(process.pid)
    process.stdin.write("\n")
    process.stdin.close()
    assert process.stdout is not None
    assert process.stdout.read() in ("ends 0\ninterrupted\n", "interrupted\n")

    process = start(args=[sys.executable, "-c", THREADS], stdin=subprocess.PIPE)
    assert lines_until(process, 1) == ["begins 0"]
    process.send_signal(signal.SIGINT)
    wait_until_pending_signals_are_gone(process.pid)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert process.stdout is not None
    assert "ends" not in process.stdout.read()


# The numbers of system calls on x86-64 and aarch64: those in which loops wait, and read.
WAITS = {
    # clock_nanosleep, epoll_wait, epoll_pwait, epoll_pwait2
    "x86_64": {230, 232, 281, 441},
    "aarch64": {115, 22, 441},
}
READ = {"x86_64": 0, "aarch64": 63}


def wait_until_it_waits(pid: int) -> None:
    """Its main thread waits for the system."""
    numbers = {str(number) for number in WAITS[os.uname().machine]}
    call = Path(f"/proc/{pid}/syscall")
    while call.read_text().split()[0] not in numbers:
        time.sleep(0.001)


def wait_until_it_reads_its_input(pid: int) -> None:
    """Its main thread is in a read of descriptor 0, and not of a module that it imports."""
    call = Path(f"/proc/{pid}/syscall")
    while call.read_text().split()[:2] != [str(READ[os.uname().machine]), "0x0"]:
        time.sleep(0.001)


def wait_until_pending_signals_are_gone(pid: int) -> None:
    """Python's own handler has run when the kernel has no signal left for the process."""
    status = Path(f"/proc/{pid}/status")
    while any(
        int(line.split()[1], 16)
        for line in status.read_text().splitlines()
        if line.startswith(("SigPnd", "ShdPnd"))
    ):
        time.sleep(0.001)


@pytest.mark.parametrize("mode", ["lean", "asyncio", "threads"])
def test_what_runs_when_all_is_stopped_ends_and_nothing_else_starts(mode: Any) -> None:
    began: list[int] = []

    def begin(item: int) -> int:
        began.append(item)
        if item == 4:
            outcomes.stop()
        return item

    async def begin_in_loop(item: int) -> int:
        return begin(item)

    fn = begin if mode == "threads" else begin_in_loop
    outcomes = fanout(fn, range(1000), limit=1, mode=mode)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3, 4]
    assert began == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("limit", [1, "auto"])
@pytest.mark.parametrize("mode", ["lean", "asyncio", "threads"])
def test_what_waits_to_be_tried_again_comes_at_once_when_all_is_stopped(
    mode: Any, limit: Any
) -> None:
    def handle(_number: int, _frame: object) -> None:
        outcomes.stop()

    def fail(item: int) -> None:
        if item == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        raise ConnectionError(item)

    async def fail_in_loop(item: int) -> None:
        fail(item)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        outcomes = fanout(
            fail if mode == "threads" else fail_in_loop,
            [0, 1],
            limit=limit,
            mode=mode,
            retries=1,
            backoff=Backoff(1e6, most=1e6),
        )
        came: list[Outcome] = list(outcomes)
    finally:
        signal.signal(signal.SIGUSR1, before)
    # An item is stopped while it waits, or before it fails. Threads may begin both before the stop.
    together = mode == "threads" and limit == "auto"
    assert isinstance(came[0].exception, Stopped | ConnectionError if together else Stopped)
    assert isinstance(came[1].exception, Stopped | ConnectionError)


def test_a_fan_out_can_be_stopped_before_it_began() -> None:
    outcomes = fanout(str, range(10))
    outcomes.stop()
    assert list(outcomes) == []


# The command line.

# A line is one write, for threads print at the same time.
TASKS = """\
import time
from ungil.fanout import sleep

async def cleans_up(host):
    print(f"begins {host}", flush=True)
    try:
        await sleep(1000)
    finally:
        print(f"cleaned up {host}", flush=True)

def waits_for_a_file(host):
    import os
    print(f"begins {host}", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "went"

def sleeps(host):
    print(f"begins {host}", flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def hosts(tmp_path: Path) -> list[str]:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "hosts").write_text("".join(f"sw{n}\n" for n in range(1, 11)))
    return ["fanout", "--hosts", "hosts", "--limit", "2"]


def ungil(*words: str) -> list[str]:
    return [sys.executable, "-m", "ungil", *words]


def test_ctrl_c_once_lets_end_what_runs_and_says_what_is_not_done(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    terminal = Terminal(ungil(*hosts, "-q", "tasks:waits_for_a_file"), start)
    terminal.read_until("begins sw2")
    terminal.type(b"\x03")
    terminal.read_until("ungil: nothing more starts; 2 still run; Ctrl-C again ends them now")
    (tmp_path / "go").touch()
    assert terminal.end() == 130
    end = terminal.lines()[-5:-1]
    assert end[:2] == ["2 hosts: sw1, sw2", "  went"]
    assert end[2].startswith("2 hosts in ")
    assert end[2].endswith(": 2 ok")
    assert end[3] == "stopped; not done: 8 not started (sw3, sw4, sw5, …)"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("lean", ["tasks:cleans_up"]),
        ("asyncio", ["--mode", "asyncio", "tasks:cleans_up"]),
        ("threads", ["tasks:sleeps"]),
        ("green", ["--mode", "green", "tasks:sleeps"]),
    ],
)
def test_ctrl_c_twice_ends_everything_now(
    hosts: list[str], start: Start, mode: str, words: list[str]
) -> None:
    terminal = Terminal(ungil(*hosts, "-q", *words), start)
    terminal.read_until("begins sw2")
    terminal.type(b"\x03")
    terminal.read_until("again ends them now")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    seen = terminal.seen
    assert ("cleaned up sw1" in seen) is (mode in ("lean", "asyncio"))
    assert f", {mode}: 0 ok" in seen
    told = "stopped; not done: 2 cut off while they ran, 8 not started (sw3, sw4, sw5, …)"
    assert told in seen
    assert "Traceback" not in seen


def test_a_bar_makes_room_for_what_ctrl_c_says(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    terminal = Terminal(ungil(*hosts, "tasks:waits_for_a_file"), start)
    terminal.read_until("2 running of at most 2")
    terminal.type(b"\x03")
    terminal.read_until("again ends them now")
    (tmp_path / "go").touch()
    assert terminal.end() == 130
    lines = [line for line in terminal.lines() if line]
    # The bar is gone, with the ^C that the terminal has written into it.
    assert not any("running of at most" in line or "^C" in line for line in lines), lines
    assert "ungil: nothing more starts; 2 still run; Ctrl-C again ends them now" in lines


def test_a_command_is_not_interrupted_by_the_first_ctrl_c_and_killed_by_the_second(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    script = 'trap "" TERM; echo $$ > pid-$0; echo > begun-$0; sleep 1000 & wait'
    words = ungil(*hosts, "-q", "--limit", "1", "--", "sh", "-c", script, "{host}")
    os.mkfifo(tmp_path / "begun-sw1")
    terminal = Terminal(words, start)
    (tmp_path / "begun-sw1").read_bytes()
    pid = int((tmp_path / "pid-sw1").read_text())
    terminal.type(b"\x03")
    terminal.read_until("again ends them now")
    assert os.getsid(pid) == pid
    terminal.type(b"\x03")
    assert terminal.end() == 130
    wait_until_nobody_is_left_of(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_outside_ends_commands_as_well(
    hosts: list[str], tmp_path: Path, start: Start, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "begun-sw1")
    script = "echo $$ > pid-$0; echo > begun-$0; sleep 1000 & wait"
    process = start(*hosts, "--limit", "1", "--", "sh", "-c", script, "{host}")
    (tmp_path / "begun-sw1").read_bytes()
    process.send_signal(number)
    stdout, stderr = process.communicate()
    assert process.returncode == 128 + number, stdout + stderr
    assert "stopped; not done: 1 cut off while they ran, 9 not started (sw2" in stderr
    assert stdout == ""
    wait_until_nobody_is_left_of(int((tmp_path / "pid-sw1").read_text()))


STARTING = """\
import os, signal, subprocess, sys

class Popen(subprocess.Popen):
    # The signal comes when the process has begun, and nobody knows of it yet.
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        with open("pid", "w") as file:
            file.write(str(self.pid))
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen = Popen
from ungil.cli import main
sys.exit(main(["fanout", "--hosts", "hosts", "--limit", "1", "--", "sleep", "1000{}"]))
"""


def test_a_command_that_is_just_being_started_is_ended_as_well(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    (tmp_path / "hosts").write_text("1\n2\n")
    process = program(STARTING, start=start)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (128 + signal.SIGTERM, "")
    assert "stopped; not done: 1 cut off while they ran, 1 not started (2)" in stderr
    wait_until_nobody_is_left_of(int((tmp_path / "pid").read_text()))


def test_the_same_command_does_the_rest_of_what_was_interrupted(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    words = [*hosts, "-q", "--journal", "journal", "--", "sh", "-c"]
    os.mkfifo(tmp_path / "gate")
    # The third waits, and with it the interrupt comes.
    script = "if [ $0 = sw3 ]; then echo > gate; cat gate; fi; echo done with $0"
    process = start(*words, script, "{host}")
    (tmp_path / "gate").read_bytes()
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "again ends them now" in process.stderr.readline() + process.stderr.readline()
    (tmp_path / "gate").write_text("go\n")
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert "the same command does the rest" in stderr
    done = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()[1:]]
    (tmp_path / "gate").unlink()
    again = start(*words, script.replace("cat gate;", ""), "{host}")
    assert again.wait() == 2  # another command
    (tmp_path / "gate").write_text("")
    again = start(*words, script, "{host}")
    stdout, stderr = again.communicate()
    assert again.returncode == 0
    assert f"10 ok ({len(done)} of them before)" in stderr
    assert stdout.count("done with") == 10


def test_ctrl_c_ends_the_wait_for_hosts_that_are_piped_in(hosts: list[str], start: Start) -> None:
    process = start("fanout", "--json", "--", "echo", "{}", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("sw1\n")
    process.stdin.flush()
    wait_until_it_reads_its_input(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stdout is not None
    assert [json.loads(line)["host"] for line in process.stdout] == ["sw1"]
    assert process.stderr is not None
    assert "stopped; not done: what was not read yet" in process.stderr.read()


def test_an_ignored_interrupt_stays_ignored(hosts: list[str], tmp_path: Path, start: Start) -> None:
    """As in the background of a shell without job control, or under nohup."""
    words = ungil(*hosts, "-q", "tasks:waits_for_a_file")
    process = start(args=["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words])
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()
    _, stderr = process.communicate()
    assert process.returncode == 0
    assert ": 10 ok" in stderr
