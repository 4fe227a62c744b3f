"""Under every policy the main thread runs its signal handlers at once, whoever holds the GIL.

That it does not wait for a quantum is shown without a clock: the quantum lasts almost three hours.
"""

from __future__ import annotations

import platform
import signal
import subprocess
import time
from pathlib import Path

import pytest
from combinations import pairwise
from pythons import Python, pythons
from scheduling import ENDLESS_QUANTUM, NUMBERS, POLICIES, read_line, running
from suite import PROGRAMS

PYTHONS = pythons("3.8", "3.9", "3.10", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "handled.py"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]
COMPUTING = "4"
FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]
# FUTEX_WAIT | FUTEX_PRIVATE_FLAG: how a thread sleeps in line, where its word is 0, and for a mutex
# of glibc's, where the word is 2. CPython's locks wait by another call.
WAIT, IN_LINE = "0x80", ["0x80", "0x0"]


def wait_until_asleep(process: subprocess.Popen[str], in_line: bool = False) -> None:
    """Wait until the main thread sleeps where it is to be interrupted.

    A signal that comes earlier is seen by CPython when the call that the thread was about to make
    is over, which may be never. That is so without a policy too. The mutex of the GIL is earlier:
    on a busy machine a thread sleeps for it for a moment.
    """
    while True:
        call = Path(f"/proc/{process.pid}/task/{process.pid}/syscall").read_text().split()
        # "running", "-1", or a number and its arguments.
        if call[0].isdigit():
            asleep = call[2:4] if call[0] == FUTEX else []
            if asleep == IN_LINE if in_line else WAIT not in asleep:
                return
        assert process.poll() is None
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("where", "policy", "python"),
    pairwise(["join", "lock", "sleep", "read", "select"], POLICIES, PYTHONS),
    ids=str,
)
def test_handlers_run_without_waiting_for_the_end_of_a_quantum(
    python: Python, policy: str, where: str
) -> None:
    number = SIGNALS[POLICIES.index(policy)]
    words = (where, COMPUTING, str(NUMBERS[policy]), "at-once")
    # Under batch nobody is asked to let go before everybody is where he should be.
    with running(python, PROGRAM, *words, policy="batch", quantum_ms=ENDLESS_QUANTUM) as process:
        assert read_line(process) == "ready"
        wait_until_asleep(process)
        process.send_signal(number)
        assert process.wait() == number


@pytest.mark.parametrize(
    ("how", "policy", "python"),
    # Under the others a thread that comes back may be let in at once.
    pairwise(["at-once", "default"], ["fair", "batch"], PYTHONS),
    ids=str,
)
def test_a_signal_ends_a_wait_for_the_gil(python: Python, policy: str, how: str) -> None:
    words = ("line", COMPUTING, str(NUMBERS[policy]), how)
    with running(python, PROGRAM, *words, policy=policy, quantum_ms=ENDLESS_QUANTUM) as process:
        assert read_line(process) == "ready"
        wait_until_asleep(process, in_line=True)
        process.send_signal(signal.SIGINT)
        if how == "default":
            # Another thread may have been let in before.
            assert {"interrupted\n"} == set(process.stdout or ()) - {"ready\n"}
        assert process.wait() == (0 if how == "default" else signal.SIGINT)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_ctrl_c_ends_a_computation_that_is_alone(python: Python, policy: str) -> None:
    words = ("compute", "0", str(NUMBERS[policy]), "default")
    with running(python, PROGRAM, *words, policy="batch", quantum_ms=ENDLESS_QUANTUM) as process:
        assert read_line(process) == "ready"
        process.send_signal(signal.SIGINT)
        assert read_line(process) == "interrupted"
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("where", "policy", "python"), pairwise(["join", "compute"], POLICIES, PYTHONS), ids=str
)
def test_ctrl_c_raises_keyboard_interrupt_beside_threads_that_compute(
    python: Python, policy: str, where: str
) -> None:
    words = (where, COMPUTING, str(NUMBERS[policy]), "default")
    with running(python, PROGRAM, *words, policy=policy) as process:
        assert read_line(process) == "ready"
        if where != "compute":
            wait_until_asleep(process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (stdout.replace("ready\n", ""), stderr) == ("interrupted\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("where", "policy", "python"), pairwise(["lock", "compute"], POLICIES, PYTHONS), ids=str
)
def test_a_thousand_signals_a_second_are_handled_and_starve_nobody(
    python: Python, policy: str, where: str
) -> None:
    words = (where, COMPUTING, str(NUMBERS[policy]), "5")
    with running(python, PROGRAM, *words, policy=policy) as process:
        assert read_line(process) == "ready"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGUSR1)
        stdout, stderr = process.communicate()
    assert (stdout.replace("ready\n", ""), stderr) == ("handled\n", "")
    assert process.returncode == 0
