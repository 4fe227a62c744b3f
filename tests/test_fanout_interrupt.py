"""Ctrl-C: in a program that fans out, and in `ungil fanout`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from blocked import wait_until_in_a_lock, wait_until_in_its_loop, wait_until_it_reads_its_input
from process_groups import wait_until_nobody_is_left_of
from suite import PROGRAMS
from terminals import Start, Terminal

LOOPS = ["lean", "asyncio", "uvloop"]


def lines_until(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def program(name: str, *words: str, start: Start, **options: Any) -> subprocess.Popen[str]:
    return start(args=[sys.executable, str(PROGRAMS / name), *words], **options)


@pytest.mark.parametrize(
    ("mode", "way"),
    [*((mode, "call") for mode in LOOPS), ("asyncio", "stream"), ("uvloop", "stream")],
)
def test_an_interrupt_cancels_coroutines_and_lets_them_clean_up(
    mode: Any, way: str, start: Start
) -> None:
    process = program("fanout_interrupted.py", mode, way, start=start)
    assert lines_until(process, 3) == ["begins 0", "begins 1", "begins 2"]
    wait_until_in_its_loop(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    cleaned = [f"cleaned up {n}" for n in range(3)]
    assert sorted(stdout.splitlines()) == [*cleaned, "interrupted"]
    assert stdout.endswith("interrupted\n")
    assert (stderr, process.returncode) == ("", 0)


def interrupted_thread(start: Start) -> subprocess.Popen[str]:
    """A program that was interrupted once, and waits for the thread of an item."""
    process = program("fanout_threads_interrupted.py", start=start, stdin=subprocess.PIPE)
    assert lines_until(process, 1) == ["begins 0"]
    wait_until_in_a_lock(process.pid)
    process.send_signal(signal.SIGINT)
    assert lines_until(process, 1) == ["is waited for 0"]
    return process


def test_an_interrupt_waits_for_threads(start: Start) -> None:
    assert interrupted_thread(start).communicate("\n") == ("ends 0\ninterrupted\n", "")


def test_a_second_interrupt_does_not_wait_for_threads(start: Start) -> None:
    process = interrupted_thread(start)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.read() == "interrupted\n"
    assert process.wait() == 0


# The command line.


@pytest.fixture
def hosts(tmp_path: Path) -> list[str]:
    shutil.copy(PROGRAMS / "tasks_that_wait.py", tmp_path / "tasks.py")
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


def test_after_ctrl_c_workers_begin_nothing_of_what_they_have_in_stock(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    hosts[-1] = "1"
    words = ["-q", "--json", "--engine", "processes:1", "tasks:waits_for_a_file"]
    terminal = Terminal(ungil(*hosts, *words), start)
    terminal.read_until("begins sw1")
    terminal.type(b"\x03")
    terminal.read_until("ungil: nothing more starts; what runs goes on; Ctrl-C again ends it now")
    terminal.read_until('"error": "not started", "attempts": 0')
    (tmp_path / "go").touch()
    assert terminal.end() == 130
    assert "begins sw2" not in terminal.seen
    assert ": 1 ok" in terminal.seen
    assert "stopped; not done: 9 not started (sw2, sw3, sw4, …)" in terminal.seen


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
    told = "stopped; not done: 2 stopped while they ran, 8 not started (sw3, sw4, sw5, …)"
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
    assert "stopped; not done: 1 stopped while they ran, 9 not started (sw2" in stderr
    assert stdout == ""
    wait_until_nobody_is_left_of(int((tmp_path / "pid-sw1").read_text()))


def test_a_command_that_is_just_being_started_is_ended_as_well(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    (tmp_path / "hosts").write_text("1\n2\n")
    process = program("command_just_started.py", start=start)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (128 + signal.SIGTERM, "")
    assert "stopped; not done: 1 stopped while they ran, 1 not started (2)" in stderr
    wait_until_nobody_is_left_of(int((tmp_path / "pid").read_text()))


def test_the_same_command_does_the_rest_of_what_was_interrupted(
    hosts: list[str], tmp_path: Path, start: Start
) -> None:
    words = [*hosts, "-q", "--limit", "1", "--journal", "journal", "--", "sh", "-c"]
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
    assert "run the same command again to do the rest" in stderr
    assert len((tmp_path / "journal").read_text().splitlines()[1:]) == 3
    (tmp_path / "gate").unlink()
    again = start(*words, script.replace("cat gate;", ""), "{host}")
    assert again.wait() == 2  # another command
    (tmp_path / "gate").write_text("")
    again = start(*words, script, "{host}")
    stdout, stderr = again.communicate()
    assert again.returncode == 0
    assert "10 ok (3 of them before)" in stderr
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
    assert "stopped; not done: hosts that ungil had not read yet" in process.stderr.read()


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
