"""Whatever is sent to ungil's process reaches the program, once, as if it had been sent to it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from process_groups import (
    WITNESS,
    children_of,
    program_of,
    wait_until_all_is_blocked,
    wait_until_gone,
    wait_until_nobody_is_left_of,
    wait_until_stopped,
)
from suite import PROGRAMS
from terminals import Terminal

Start = Callable[..., subprocess.Popen[str]]

TAKEN = PROGRAMS / "signals_taken.py"
TRACE = [sys.executable, "-m", "ungil", "trace", "-q"]
# They end the program, or cannot be taken.
NUMBERS = sorted(set(range(1, 64)) - {signal.SIGKILL, signal.SIGSTOP})
SI_USER, SI_KERNEL, SI_QUEUE = 0, 0x80, -1
LAST = signal.SIGRTMAX


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the program prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@contextmanager
def taking(start: Start, *before: str) -> Generator[subprocess.Popen[str]]:
    """The program that takes signals, traced; what it prints after the block is an error."""
    process = start(args=[*before, *TRACE, sys.executable, str(TAKEN)])
    assert line(process).startswith("ready ")
    yield process
    # All that came before it, however late, is taken before the highest number of all.
    process.send_signal(LAST)
    assert process.communicate() == ("", "")
    assert process.returncode == 0


def sigqueue(pid: int, number: int, value: int) -> None:
    """Send a signal with a value."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sigqueue(pid, number, ctypes.c_void_p(value)) != 0:
        raise OSError(ctypes.get_errno(), "sigqueue")


def test_every_signal_sent_to_ungil_arrives_once(start: Start) -> None:
    with taking(start) as process:
        for number in NUMBERS:
            os.kill(process.pid, number)
            assert line(process) == f"{number} {SI_USER} {process.pid} 0"


def test_every_signal_sent_to_the_process_group_arrives_once(start: Start) -> None:
    with taking(start) as process:
        for number in NUMBERS:
            os.killpg(process.pid, number)
            assert line(process) == f"{number} {SI_USER} {os.getpid()} 0"


@pytest.mark.parametrize("options", [("ungil-writer",), ("ungil-snapshots", "--last", "5s")])
def test_no_thread_of_ungil_takes_a_signal_that_it_does_not_send_on(
    start: Start, options: tuple[str, ...]
) -> None:
    """A thread starts with the mask of its starter, less the C library's own 32 and 33."""
    last_to_start, *words = options
    process = start(args=[*TRACE, *words, sys.executable, str(TAKEN)])
    assert line(process).startswith("ready ")
    wait_until_all_is_blocked(process.pid, last_to_start)
    for number in [32, 33] * 50:
        os.kill(process.pid, number)
        assert line(process) == f"{number} {SI_USER} {process.pid} 0"


def test_real_time_signals_come_with_their_value_their_sender_and_in_order(start: Start) -> None:
    with taking(start) as process:
        queued = [(number, value) for number in (34, 40, 63) for value in (7, -1, 7)]
        for number, value in queued:
            sigqueue(process.pid, number, value)
        sent = [f"{number} {SI_QUEUE} {os.getpid()} {value}" for number, value in queued]
        assert sorted(line(process) for _ in sent) == sorted(sent)
        # Not only real-time ones have a value.
        sigqueue(process.pid, signal.SIGUSR1, 42)
        assert line(process) == f"{int(signal.SIGUSR1)} {SI_QUEUE} {os.getpid()} 42"


def test_a_thousand_signals_from_two_senders_arrive_as_they_were_sent(start: Start) -> None:
    """What is for ungil alone is sent on, what the group gets is not, however they mix."""
    number = signal.SIGRTMIN
    with taking(start) as process:
        for round_ in range(250):
            sigqueue(process.pid, number, 3 * round_)
            os.killpg(process.pid, number)
            sigqueue(process.pid, number, 3 * round_ + 1)
            os.kill(process.pid, number)
        lines = [line(process) for _ in range(1000)]
    own, ungils = f"{number} {SI_USER} {os.getpid()} 0", f"{number} {SI_USER} {process.pid} 0"
    values = [it for pair in range(250) for it in (3 * pair, 3 * pair + 1)]
    queued = [f"{number} {SI_QUEUE} {os.getpid()} {value}" for value in values]
    assert sorted(lines) == sorted([own] * 250 + [ungils] * 250 + queued)
    # Of one origin they come in the order in which they were sent.
    assert [it for it in lines if it in set(queued)] == queued


@pytest.mark.parametrize("number", [32, 33])
def test_signals_of_the_c_library_end_ungil_as_they_end_the_program(
    start: Start, number: int
) -> None:
    words = ["sh", "-c", "echo ready; exec sleep 1000"]
    bare = start(args=words)
    assert line(bare) == "ready"
    bare.send_signal(number)
    traced = start("trace", "-q", *words)
    assert line(traced) == "ready"
    traced.send_signal(number)
    assert (bare.wait(), traced.wait()) == (-number, -number)


def test_an_alarm_that_was_set_before_ungil_reaches_the_program(start: Start) -> None:
    """`perl -e 'alarm 10; exec @ARGV'` is how timeouts were set before there was timeout(1)."""
    code = (
        "import os, signal, sys\n"
        "signal.setitimer(signal.ITIMER_REAL, 1)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, *TRACE, "sleep", "1000"]
    assert start(args=words).wait() == -signal.SIGALRM


def test_a_signal_that_comes_before_the_program_waits_for_it(start: Start) -> None:
    code = (
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    program = "import signal; print([int(it) for it in signal.sigpending()])"
    process = start(args=[sys.executable, "-c", code, *TRACE, "-c", program])
    assert process.communicate()[0] == f"[{int(signal.SIGUSR1)}]\n"


# What the program starts with.

DISPOSITIONS = (
    "import signal as s\n"
    "print([int(n) for n in s.valid_signals() if s.getsignal(n) is s.SIG_IGN],\n"
    "      [int(n) for n in s.pthread_sigmask(s.SIG_BLOCK, [])])"
)


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGCHLD", "SIGTSTP", "SIGUSR1", "SIGRTMIN"])
def test_the_program_starts_with_the_mask_and_the_dispositions_of_ungil(
    start: Start, name: str
) -> None:
    code = (
        "import os, signal as s, sys\n"
        f"s.signal(s.{name}, s.SIG_IGN)\n"
        f"s.pthread_sigmask(s.SIG_BLOCK, [s.SIGUSR2, s.{name}])\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", f"{DISPOSITIONS}; raise SystemExit(7)"]
    bare = start(args=[sys.executable, "-c", code, *words])
    traced = start(args=[sys.executable, "-c", code, *TRACE, *words])
    assert bare.communicate()[0] == traced.communicate()[0] != ""
    assert bare.returncode == traced.returncode == 7


def test_a_signal_that_ungil_was_started_to_ignore_reaches_who_wants_it(start: Start) -> None:
    """As a script that starts something in its background ignores SIGINT for it."""
    program = (
        "import signal as s, sys, time\n"
        "s.signal(s.SIGINT, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.01)"
    )
    traced = [*TRACE, "-c", program]
    process = start(args=["sh", "-c", 'trap "" INT; exec "$@"', "sh", *traced])
    assert line(process) == "ready"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 5


# Signals of a terminal.


def taking_on_a_terminal(start: Start) -> Terminal:
    """The program that takes signals, traced on a terminal that does not show what is typed."""
    quiet = ["sh", "-c", 'stty -echo; exec "$@"', "sh"]
    terminal = Terminal([*quiet, *TRACE, sys.executable, str(TAKEN)], start)
    terminal.read_until("ready")
    return terminal


def end_taking(terminal: Terminal, lines: int) -> None:
    """End it; it must have taken so many signals."""
    (ungil,) = children_of(terminal.login.pid).values()
    os.kill(ungil, LAST)
    assert terminal.end() == 0
    assert len(terminal.lines()) == 1 + lines + 1, terminal.seen


@pytest.mark.parametrize(
    ("key", "number"),
    [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (b"\x1a", signal.SIGTSTP)],
)
def test_a_key_of_a_terminal_arrives_once(start: Start, key: bytes, number: signal.Signals) -> None:
    terminal = taking_on_a_terminal(start)
    for count in (1, 2, 3):
        terminal.type(key)
        terminal.read_until(f"\n{int(number)} {SI_KERNEL} 0 0\r", count)
    end_taking(terminal, 3)


def test_a_window_that_changes_its_size_is_told_once(start: Start) -> None:
    terminal = taking_on_a_terminal(start)
    for count in (1, 2, 3):
        terminal.resize(columns=100 + count)
        terminal.read_until(f"\n{int(signal.SIGWINCH)} {SI_KERNEL} 0 0\r", count)
    end_taking(terminal, 3)


def test_a_terminal_that_hangs_up_tells_the_program(start: Start, tmp_path: Path) -> None:
    """It tells the leader of the session alone, which is ungil, and the program would be."""
    leader = (
        "import fcntl, os, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    master, slave = os.openpty()
    words = [sys.executable, "-c", leader, *TRACE, sys.executable, str(TAKEN)]
    process = start(args=words, stdin=slave)
    os.close(slave)
    assert line(process).startswith("ready ")
    os.close(master)
    assert line(process) == f"{int(signal.SIGHUP)} {SI_USER} {process.pid} 0"
    assert line(process) == f"{int(signal.SIGCONT)} {SI_USER} {process.pid} 0"
    process.send_signal(LAST)
    assert process.wait() == 0


# Stopping and going on.


def job(start: Start, program: str) -> Terminal:
    """A program traced as the job of a shell, which brings it back once it is stopped."""
    shell = '"$@"; echo stopped with $?; fg >/dev/null; echo ended with $?'
    return Terminal(["bash", "-m", "-c", shell, "bash", *TRACE, "-c", program], start)


@pytest.mark.parametrize("number", ["SIGTSTP", "SIGSTOP"])
def test_a_program_that_stops_itself_at_ctrl_z_stops_the_job(start: Start, number: str) -> None:
    """As programs do that draw on the whole screen: they tidy it up first."""
    program = (
        "import os, signal as s\n"
        "s.pthread_sigmask(s.SIG_BLOCK, [s.SIGTSTP])\n"
        "print('ready', flush=True)\n"
        "s.sigwait([s.SIGTSTP])\n"
        "print('tidied up', flush=True)\n"
        "s.pthread_sigmask(s.SIG_UNBLOCK, [s.SIGTSTP])\n"
        f"os.kill(os.getpid(), s.{number})\n"
        "print('line', input(), flush=True)"
    )
    terminal = job(start, program)
    terminal.read_until("ready")
    terminal.type(b"\x1a")
    terminal.read_until(f"stopped with {128 + signal.Signals[number]}")
    assert "tidied up" in terminal.seen
    terminal.type(b"hello\n")
    assert "line hello" in terminal.read_until("ended with 0")
    assert terminal.end() == 0


def test_a_program_that_ignores_ctrl_z_keeps_its_job_in_the_foreground(start: Start) -> None:
    program = (
        "import signal as s\n"
        "s.signal(s.SIGTSTP, s.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "print('line', input(), flush=True)"
    )
    terminal = Terminal([*TRACE, "-c", program], start)
    terminal.read_until("ready")
    terminal.type(b"\x1a")
    # Only who is in the foreground reads.
    terminal.type(b"hello\n")
    terminal.read_until("line hello")
    assert terminal.end() == 0


@pytest.mark.parametrize("to_group", [False, True])
def test_a_stop_by_kill_stops_both_and_a_continue_continues_both(
    start: Start, to_group: bool
) -> None:
    # The kernel stops nobody whose process group is an orphan, as that of a new session is.
    group = {"start_new_session": False, "process_group": 0}
    process = start("trace", "-q", "-c", "print('ready', flush=True); input()", stdin=-1, **group)
    send = os.killpg if to_group else os.kill
    assert line(process) == "ready"
    program = program_of(process.pid)
    for _ in range(3):
        send(process.pid, signal.SIGTSTP)
        wait_until_stopped(program)
        wait_until_stopped(process.pid)
        send(process.pid, signal.SIGCONT)
        wait_until_stopped(process.pid, False)
        wait_until_stopped(program, False)
    process.communicate("\n")
    assert process.returncode == 0


def test_sigstop_stops_ungil_alone_and_sigcont_reaches_the_program(start: Start) -> None:
    with taking(start) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until_stopped(process.pid)
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGCONT)
        numbers = {line(process).split()[0], line(process).split()[0]}
        assert numbers == {str(int(signal.SIGUSR1)), str(int(signal.SIGCONT))}


def test_a_program_that_somebody_throttles_does_not_stop_ungil(start: Start) -> None:
    """As cpulimit does: it stops and continues a process by its number, again and again."""
    process = start("trace", "-q", "-c", "print('ready', flush=True); input()", stdin=-1)
    assert line(process) == "ready"
    program = program_of(process.pid)
    for _ in range(100):
        os.kill(program, signal.SIGSTOP)
        wait_until_stopped(program)
        os.kill(program, signal.SIGCONT)
    process.communicate("\n")
    assert process.returncode == 0


# The witness, who tells what all of the group get from what ungil alone gets.


def test_the_witness_has_no_file_open_and_no_name_by_which_others_are_signalled(
    start: Start,
) -> None:
    with taking(start) as process:
        witness = Path("/proc", str(children_of(process.pid)[WITNESS]))
        files = [str(it.readlink()) for it in (witness / "fd").iterdir()]
        assert [it.partition(":")[0] for it in files] == ["socket"]
        assert (witness / "cmdline").read_bytes().rstrip(b"\0") == WITNESS.encode()


def test_without_its_witness_ungil_still_hands_on(start: Start) -> None:
    with taking(start) as process:
        os.kill(children_of(process.pid)[WITNESS], signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
            assert line(process) == f"{int(number)} {SI_USER} {process.pid} 0"


def test_ctrl_c_arrives_once_without_a_witness_as_well(start: Start) -> None:
    terminal = taking_on_a_terminal(start)
    (ungil,) = children_of(terminal.login.pid).values()
    os.kill(children_of(ungil)[WITNESS], signal.SIGKILL)
    for count in (1, 2, 3):
        terminal.type(b"\x03")
        terminal.read_until(f"\n{int(signal.SIGINT)} {SI_KERNEL} 0 0\r", count)
    end_taking(terminal, 3)


def test_a_witness_that_is_stopped_is_told_to_go_on(start: Start) -> None:
    with taking(start) as process:
        witness = children_of(process.pid)[WITNESS]
        os.kill(witness, signal.SIGSTOP)
        wait_until_stopped(witness)
        for number in (signal.SIGINT, signal.SIGCONT):
            process.send_signal(number)
            assert line(process) == f"{int(number)} {SI_USER} {process.pid} 0"


def test_timeout_sends_a_traced_program_as_much_as_a_bare_one(start: Start) -> None:
    """It signals its child, then its whole process group, and sends SIGCONT after it.

    That may come before, and once or twice.
    """
    number = signal.SIGRTMIN
    for before in [], TRACE:
        words = ["timeout", "-s", str(int(number)), "1000", *before, sys.executable, str(TAKEN)]
        process = start(args=words)
        assert line(process).startswith("ready ")
        (child,) = children_of(process.pid).values()
        process.send_signal(number)
        taken: list[str] = []
        while len(taken) < 2:
            told, code, sender, _ = line(process).split()
            if told != str(int(signal.SIGCONT)):
                assert (told, code) == (str(int(number)), str(SI_USER))
                taken.append(sender)
        assert set(taken) <= {str(process.pid), str(child)}
        os.kill(child, LAST)
        rest = process.communicate()[0].splitlines()
        assert all(it.startswith(f"{int(signal.SIGCONT)} ") for it in rest)


def test_a_recorder_that_is_killed_takes_nobody_along_but_its_witness(start: Start) -> None:
    process = start("trace", "-q", "-c", "import time; print('ready', flush=True); time.sleep(1e6)")
    assert line(process) == "ready"
    witness, program = children_of(process.pid)[WITNESS], program_of(process.pid)
    process.kill()
    process.wait()
    wait_until_gone(witness)
    os.kill(program, signal.SIGKILL)
    wait_until_nobody_is_left_of(process.pid)
