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
from pythons import Python, pythons
from scheduling import ENDLESS_QUANTUM, NUMBERS, POLICIES, PROGRAMS, start

PYTHONS = pythons("3.8", "3.9", "3.10", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "handled.py"
FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]
# FUTEX_WAIT | FUTEX_PRIVATE_FLAG: how a thread sleeps in line. glibc's locks wait differently.
IN_LINE = "0x80"


def sleeps_in_line(process: subprocess.Popen[str]) -> bool | None:
    """Whether the main thread sleeps in line; None if it does not sleep at all."""
    call = Path(f"/proc/{process.pid}/task/{process.pid}/syscall").read_text().split()
    if call[0] in ("running", "-1"):
        return None
    return call[0] == FUTEX and call[2] == IN_LINE


def wait_until_asleep(process: subprocess.Popen[str], in_line: bool) -> None:
    """Wait until the main thread sleeps where it is to be interrupted.

    A signal that comes before is seen by CPython when the call that the thread is about to make
    is over, which may be never. That is so without a policy too.
    """
    while sleeps_in_line(process) is not in_line:
        assert process.poll() is None
        time.sleep(0.001)


def interrupt(python: Python, policy: str, where: str, computing: int) -> None:
    words = (where, str(computing), "0", str(NUMBERS[policy]))
    # Under batch nobody is asked to let go before everybody is where he should be.
    with start(
        python, PROGRAM, *words, policy="batch", quantum_ms=ENDLESS_QUANTUM
    ) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            if where != "compute":
                wait_until_asleep(process, in_line=where == "line")
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate()
        finally:
            process.kill()
    assert (stdout.replace("ready\n", ""), stderr) == ("interrupted\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("where", ["join", "lock", "sleep", "read", "select"])
def test_ctrl_c_does_not_wait_for_the_end_of_a_quantum(
    python: Python, policy: str, where: str
) -> None:
    interrupt(python, policy, where, computing=4)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
# Under the others a thread that comes back may be let in at once.
@pytest.mark.parametrize("policy", ["fair", "batch"])
def test_ctrl_c_ends_a_wait_for_the_gil(python: Python, policy: str) -> None:
    interrupt(python, policy, "line", computing=4)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_ctrl_c_ends_a_computation(python: Python, policy: str) -> None:
    interrupt(python, policy, "compute", computing=0)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("where", ["lock", "compute"])
def test_a_thousand_signals_a_second_are_handled_and_starve_nobody(
    python: Python, policy: str, where: str
) -> None:
    with start(python, PROGRAM, where, "4", "5", policy=policy) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGUSR1)
            stdout, stderr = process.communicate()
        finally:
            process.kill()
    assert (stdout.replace("ready\n", ""), stderr) == ("handled\n", "")
    assert process.returncode == 0
