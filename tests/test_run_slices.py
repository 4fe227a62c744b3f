"""Under `interactive` a thread that uses the GIL a little has a short slice of the processor.

The kernel is asked by the program itself, and by nobody of ungil. Where the kernel has no slices
(before Linux 6.12) it says 0 for all, before and after.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from pythons import Python, pythons
from scheduling import PROGRAMS

Run = Callable[..., subprocess.CompletedProcess[str]]
PYTHONS = pythons("3.8", "3.11-debian", "3.12", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "slices.py"
# SCHED_OTHER and SCHED_BATCH (<linux/sched.h>).
OTHER, BATCH = 0, 3


class Slices:
    """A running tests/programs/slices.py."""

    def __init__(self, process: subprocess.Popen[str], orders: IO[str], answers: IO[str]) -> None:
        self.process = process
        self._orders, self._answers = orders, answers

    def tell(self, order: str) -> None:
        """Give it an order."""
        self._orders.write(order + "\n")
        self._orders.flush()

    def does(self, order: str) -> Any:
        """What it says after `order`."""
        self.tell(order)
        line = self._answers.readline()
        assert line, self.process.wait()
        return json.loads(line)


@contextmanager
def slices(
    *options: str, python: str = sys.executable, policy: str = "interactive", **variables: str
) -> Generator[Slices]:
    """Run the program by `ungil run`; in the end it is over."""
    kept = {name: it for name, it in os.environ.items() if not name.startswith("UNGIL_")}
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "ungil", "run", "--policy", policy, *options),
            *(python, "-Wignore", str(PROGRAM)),
        ],
        env=kept | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Slices(process, process.stdin, process.stdout)
        finally:
            process.kill()


def all_have(slice_ns: int) -> dict[str, Any]:
    """What the program says if all of its threads have a slice, and nothing else was changed."""
    return {"main": slice_ns, "computing": [slice_ns, slice_ns], "nice": 0, "policy": OTHER}


def is_short(slice_ns: int, own_ns: int) -> bool:
    """Whether a slice is a short one; without slices, whether there is none."""
    return slice_ns == 0 if own_ns == 0 else slice_ns < own_ns


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_thread_has_a_short_slice_for_as_long_as_it_uses_little(python: Python) -> None:
    with slices(python=python.path) as program:
        own = program.does("nothing")
        own_ns = own["main"]
        assert own == all_have(own_ns)
        little = program.does("little")
        assert is_short(little["main"], own_ns)
        assert little == all_have(own_ns) | {"main": little["main"]}
        assert program.does("compute") == own


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_what_a_thread_starts_has_no_short_slice(python: Python) -> None:
    with slices(python=python.path) as program:
        own_ns = program.does("nothing")["main"]
        started = program.does("start")
        assert started == dict.fromkeys(started, own_ns)
        assert started.keys() >= {"thread", "subprocess", "fork", "exec", "posix_spawn", "system"}


def test_a_program_that_a_thread_becomes_has_no_short_slice() -> None:
    with slices() as program:
        own_ns = program.does("nothing")["main"]
        assert program.does("become") == own_ns


@pytest.mark.parametrize("policy", ["stock", "fair", "batch", "priority"])
def test_another_policy_gives_every_thread_its_own_slice_back(ungil: Run, policy: str) -> None:
    with slices() as program:
        own = program.does("nothing")
        assert is_short(program.does("little")["main"], own["main"])
        assert ungil("policy", str(program.process.pid), policy).returncode == 0
        assert program.does("nothing") == own
        assert ungil("policy", str(program.process.pid), "interactive").returncode == 0
        assert is_short(program.does("little")["main"], own["main"])


@pytest.mark.parametrize("policy", ["stock", "fair", "batch", "priority"])
def test_no_other_policy_changes_a_slice(policy: str) -> None:
    with slices(policy=policy) as program:
        assert program.does("nothing") == program.does("both")


@pytest.mark.parametrize("options", [(), ("--no-children",)], ids=str)
def test_unless_it_is_to_ungil_changes_no_slice(options: tuple[str, ...]) -> None:
    with slices(*options, UNGIL_SLICE="own") as program:
        assert program.does("nothing") == program.does("both")


def test_a_slice_that_the_program_has_chosen_is_left_alone() -> None:
    with slices() as program:
        own_ns = program.does("nothing")["main"]
        chosen = program.does(f"choose {2 * own_ns}")
        assert chosen == all_have(own_ns) | {"main": 2 * own_ns}
        assert program.does("both") == chosen


def test_a_slice_that_the_program_chooses_in_place_of_a_short_one_stays(ungil: Run) -> None:
    with slices() as program:
        own_ns = program.does("nothing")["main"]
        program.does("little")
        chosen = program.does(f"choose {2 * own_ns}")
        assert ungil("policy", str(program.process.pid), "batch").returncode == 0
        assert program.does("nothing") == chosen == all_have(own_ns) | {"main": 2 * own_ns}


def test_the_nice_value_is_kept() -> None:
    with slices() as program:
        assert program.does("nice 3")["nice"] == 3
        for order in ("little", "compute", "little"):
            assert program.does(order)["nice"] == 3


def test_a_thread_that_the_kernel_schedules_otherwise_is_left_alone() -> None:
    with slices() as program:
        batch = program.does("batch")
        assert batch["policy"] == BATCH
        assert program.does("both") == batch


def test_where_a_filter_would_end_the_process_no_slice_is_changed() -> None:
    with slices() as program:
        forbidden = program.does("forbid")
        assert program.does("both") == forbidden


def test_a_short_slice_is_kept_where_a_filter_would_end_the_process() -> None:
    with slices() as program:
        little = program.does("little")
        assert program.does("forbid") == little
        assert program.does("both") == little
        assert "thread" in program.does("start")


def test_the_filter_of_these_tests_does_end_a_process() -> None:
    with slices(UNGIL_SLICE="short") as program:
        if program.does("little")["main"] != 0:
            program.does("forbid")
            program.tell("compute")
            assert program.process.wait() == -signal.SIGSYS


def test_in_a_sandbox_short_slices_are_given_if_they_are_asked_for() -> None:
    with slices(UNGIL_SLICE="short") as program:
        own_ns = program.does("nothing")["main"]
        program.does("allow")
        assert is_short(program.does("little")["main"], own_ns)


def test_an_unknown_slice_is_one_sentence(ungil: Run) -> None:
    outcome = ungil("run", "-c", "print(1)", env=os.environ | {"UNGIL_SLICE": "tiny"})
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert outcome.stderr == (
        "ungil: UNGIL_SLICE is 'tiny'; it can only be 'own', which leaves every thread its own "
        "slice of the processor, 'short', which gives short ones in a seccomp sandbox too, or "
        "unset\n"
    )
