"""Nothing that a program does with threads and processes stops a scheduled interpreter."""

from __future__ import annotations

import signal
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from combinations import pairwise
from pythons import Python, pythons
from scheduling import (
    ENDLESS_QUANTUM,
    NUMBERS,
    POLICIES,
    page_of,
    read_line,
    read_rest,
    run,
    running,
)
from suite import PROGRAMS

PYTHONS = pythons("3.8", "3.9", "3.10", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "surviving.py"
# What surviving.py prints where all goes well.
OUTPUTS = {
    "fifty_that_compute": "50\n",
    "five_hundred_that_wait": "500\n",
    "short_ones_beside_a_long_one": "ended\n",
    "fork_while_others_wait": "[0, False, 0, False, 0, False, 0, False, 0, False] True\n",
    "end_by_return": "",
    "end_by_exit": "",
    "end_at_once": "",
    "end_by_exception": "",
    "exec_while_others_wait": "50\n",
    "exec_in_a_thread": "50\n",
    "policies_change": "8\n",
    "tiny_switch_interval": "50\n",
    "destructors_use_the_gil": "50\n",
}
# With daemon threads, 3.10 crashes at its end without ungil too (5 of 300 times): a thread that was
# not waiting looks at what was freed.
FINALISED = {"end_by_return", "end_by_exit"}
NOT_ON_3_10 = [
    (policy, python, what)
    for policy in POLICIES
    for python in PYTHONS
    for what in FINALISED
    if python.version == (3, 10)
]
# Offset in the page, and how a policy and a quantum are written there (control_page.rs).
SETTINGS_OFFSET = 16


def tell(page: Path, policy: str, quantum_ns: int) -> None:
    """Change the policy of a process from outside, as `ungil policy` does."""
    with page.open("r+b") as file:
        file.seek(SETTINGS_OFFSET)
        file.write(struct.pack("<Q", quantum_ns << 8 | NUMBERS[policy]))


@pytest.mark.parametrize(
    ("policy", "python", "what"),
    pairwise(POLICIES, PYTHONS, tuple(OUTPUTS), without=NOT_ON_3_10),
    ids=str,
)
def test_a_program_goes_on_and_ends_as_it_would_alone(
    python: Python, policy: str, what: str
) -> None:
    assert run(python, PROGRAM, what, policy=policy) == OUTPUTS[what]


@pytest.mark.parametrize("python", pythons("3.12", "3.13", since=(3, 12)), ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_sub_interpreter_has_a_line_of_its_own(python: Python, policy: str) -> None:
    assert run(python, PROGRAM, "sub_interpreters", policy=policy) == "done\n"


# As FINALISED says of 3.10.
@pytest.mark.parametrize("python", [it for it in PYTHONS if it.version != (3, 10)], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_threads_in_line_outlive_the_interpreter(python: Python, policy: str) -> None:
    with running(python, PROGRAM, "end_slowly", policy=policy) as process:
        stdout, stderr = process.communicate()
        assert (process.returncode, stdout, stderr) == (2, "", "")


@pytest.mark.parametrize(
    ("after", "before", "python"),
    pairwise(["stock", *POLICIES], ["fair", "batch"], PYTHONS),
    ids=str,
)
def test_a_new_policy_reaches_threads_that_wait(python: Python, before: str, after: str) -> None:
    with running(
        python, PROGRAM, "policy_changes_from_outside", policy=before, quantum_ms=ENDLESS_QUANTUM
    ) as process:
        # From here on, a thread holds the GIL that only a waiting one can get it from.
        assert read_line(process) == "ready"
        tell(page_of(process.pid), after, 5_000_000)
        stdout, stderr = process.communicate()
        assert (process.returncode, stdout, stderr) == (0, "4\n", "")


@pytest.mark.parametrize("quantum_ns", [0, 1, 2**56 - 1])
def test_no_quantum_that_fits_into_the_page_stops_a_program(quantum_ns: int) -> None:
    (python,) = pythons()[-1:]
    with running(python, PROGRAM, "stopped_and_continued", policy="stock") as process:
        assert read_line(process) == "ready"
        page = page_of(process.pid)
        tell(page, POLICIES[0], quantum_ns)
        # It may be done before it has been told of all of them.
        with suppress(FileNotFoundError):
            for policy in POLICIES[1:]:
                tell(page, policy, quantum_ns)
        assert read_rest(process) == (0, "done\n", "")


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_program_is_stopped_and_continued(python: Python, policy: str) -> None:
    with running(python, PROGRAM, "stopped_and_continued", policy=policy) as process:
        assert read_line(process) == "ready"
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGCONT)
        assert read_rest(process) == (0, "done\n", "")


@pytest.mark.parametrize("policy", POLICIES)
def test_only_a_killed_program_leaves_its_page(policy: str) -> None:
    (python,) = pythons()[-1:]
    with running(python, PROGRAM, "killed", policy=policy) as process:
        assert process.wait() == -signal.SIGKILL
        # The next program with this number replaces it, and `ungil run` clears it away.
        assert page_of(process.pid).exists()
