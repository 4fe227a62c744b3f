"""Under `interactive` the kernel runs threads that use the GIL a little soon, and others patiently.

The kernel is asked by the program itself, and by nobody of ungil. Where it has no slices (before
Linux 6.12) it says 0 for all, before and after.
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
from suite import PROGRAMS

Run = Callable[..., subprocess.CompletedProcess[str]]
PYTHONS = pythons("3.8", "3.11-debian", "3.12", "3.13", since=(3, 8))
PROGRAM = PROGRAMS / "slices.py"
# SCHED_OTHER and SCHED_BATCH (<linux/sched.h>).
OTHER, BATCH = 0, 3
# These tests may themselves be run by nice(1).
NICE = os.getpriority(os.PRIO_PROCESS, 0)
Thread = list[int]
"""How the kernel runs it: slice in ns, scheduling policy, nice value."""


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

    def own_ns(self) -> int:
        """The slice that all threads have without ungil."""
        return self.does("nothing")["own_ns"]


@contextmanager
def slices(
    *options: str,
    python: str = sys.executable,
    policy: str = "interactive",
    arguments: tuple[str, ...] = (),
    **variables: str,
) -> Generator[Slices]:
    """Run the program by `ungil run`; in the end it is over."""
    kept = {name: it for name, it in os.environ.items() if not name.startswith("UNGIL_")}
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "ungil", "run", "--policy", policy, *options),
            *(python, "-Wignore", str(PROGRAM), *arguments),
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


def is_run_soon(thread: Thread, own_ns: int) -> bool:
    """Whether a thread has a short slice (or none, where there are none), and nothing else."""
    slice_ns, *others = thread
    return others == [OTHER, NICE] and (slice_ns == 0 if own_ns == 0 else slice_ns < own_ns)


def computes(thread: Thread, own_ns: int) -> bool:
    """Whether a thread has a slice as its own one, and may or may not put others aside for it.

    On a busy machine it may.
    """
    slice_ns, *others = thread
    return others in ([OTHER, NICE], [BATCH, NICE]) and own_ns <= slice_ns < own_ns + 1000


def is_as_without_ungil(said: dict[str, Any]) -> bool:
    """Whether the kernel runs all threads as it would without ungil."""
    own = [said["own_ns"], OTHER, NICE]
    return all(thread == own for thread in (said["main"], *said["computing"]))


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_thread_is_run_soon_for_as_long_as_it_uses_little(python: Python) -> None:
    with slices(python=python.path) as program:
        for _ in range(2):
            little = program.does("little")
            own_ns = little["own_ns"]
            assert is_run_soon(little["main"], own_ns), little
            assert all(computes(it, own_ns) for it in little["computing"]), little
            compute = program.does("compute")
            threads = [compute["main"], *compute["computing"]]
            assert all(computes(it, own_ns) for it in threads), compute


@pytest.mark.parametrize("order", ["little", "compute"])
@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_what_a_thread_starts_is_run_as_without_ungil(python: Python, order: str) -> None:
    with slices(python=python.path) as program:
        own_ns = program.own_ns()
        started = program.does(f"start {order}")
        assert all(it == [own_ns, OTHER, NICE] for it in started.values()), started
        assert started.keys() >= {"thread", "subprocess", "fork", "exec", "posix_spawn", "system"}


@pytest.mark.parametrize("order", ["little", "compute"])
def test_a_program_that_a_thread_becomes_is_run_as_without_ungil(order: str) -> None:
    with slices() as program:
        own_ns = program.own_ns()
        assert program.does(f"become {order}") == [own_ns, OTHER, NICE]


@pytest.mark.parametrize("policy", ["stock", "fair", "batch", "priority"])
def test_under_another_policy_every_thread_is_run_as_before(ungil: Run, policy: str) -> None:
    with slices() as program:
        little = program.does("little")
        assert is_run_soon(little["main"], little["own_ns"])
        pid = str(program.process.pid)
        assert ungil("policy", pid, policy).returncode == 0
        # The one that asks has used the GIL by then; those that compute do so when it is given to
        # them.
        assert program.does("nothing")["main"] == [little["own_ns"], OTHER, NICE]
        assert is_as_without_ungil(program.does("back"))
        assert ungil("policy", pid, "interactive").returncode == 0
        assert is_run_soon(program.does("little")["main"], little["own_ns"])


@pytest.mark.parametrize("policy", ["stock", "fair", "batch", "priority"])
def test_no_other_policy_changes_how_a_thread_is_run(policy: str) -> None:
    with slices(policy=policy) as program:
        assert is_as_without_ungil(program.does("both"))


@pytest.mark.parametrize("options", [(), ("--no-children",)], ids=str)
def test_unless_it_is_to_ungil_changes_nothing(options: tuple[str, ...]) -> None:
    with slices(*options, UNGIL_SLICE="own") as program:
        assert is_as_without_ungil(program.does("both"))


def test_a_slice_that_the_program_has_chosen_is_left_alone() -> None:
    with slices() as program:
        chosen = [2 * program.own_ns(), OTHER, NICE]
        assert program.does(f"choose {chosen[0]}")["main"] == chosen
        assert program.does("both")["main"] == chosen


def test_a_slice_that_the_program_chooses_in_place_of_a_short_one_stays(ungil: Run) -> None:
    with slices() as program:
        chosen = [2 * program.does("little")["own_ns"], OTHER, NICE]
        assert program.does(f"choose {chosen[0]}")["main"] == chosen
        assert ungil("policy", str(program.process.pid), "fair").returncode == 0
        assert program.does("both")["main"] == chosen


def test_the_nice_value_is_kept() -> None:
    with slices() as program:
        assert program.does("nice 3")["main"][2] == NICE + 3
        for order in ("little", "compute", "little"):
            assert program.does(order)["main"][2] == NICE + 3


def test_a_thread_that_the_program_has_scheduled_otherwise_is_left_alone() -> None:
    with slices(arguments=("batch",)) as program:
        chosen = [program.own_ns(), BATCH, NICE]
        for _ in range(2):
            both = program.does("both")
            assert [both["main"], *both["computing"]] == [chosen] * 3


def test_a_thread_that_the_program_schedules_otherwise_loses_the_short_slice() -> None:
    with slices() as program:
        own_ns = program.does("little")["own_ns"]
        # The kernel leaves it the slice that it has.
        assert program.does("batch")["main"][1:] == [BATCH, NICE]
        for order in ("compute", "both"):
            assert program.does(order)["main"] == [own_ns, BATCH, NICE]


def test_what_such_a_thread_starts_has_no_short_slice_either() -> None:
    with slices() as program:
        own_ns = program.does("little")["own_ns"]
        assert program.does("batch")["main"][1:] == [BATCH, NICE]
        started = program.does("start nothing")
        assert all(it == [own_ns, BATCH, NICE] for it in started.values()), started


def test_where_a_filter_would_end_the_process_nothing_is_changed() -> None:
    with slices() as program:
        forbidden = program.does("forbid")["main"]
        assert program.does("both")["main"] == forbidden


def test_a_short_slice_is_kept_where_a_filter_would_end_the_process() -> None:
    with slices() as program:
        little = program.does("little")["main"]
        assert program.does("forbid")["main"] == little
        assert program.does("both")["main"] == little
        assert "thread" in program.does("start little")


def test_the_filter_of_these_tests_does_end_a_process() -> None:
    with slices(UNGIL_SLICE="short") as program:
        program.does("little")
        program.does("forbid")
        program.tell("compute")
        assert program.process.wait() == -signal.SIGSYS


def test_in_a_sandbox_short_slices_are_given_if_they_are_asked_for() -> None:
    with slices(UNGIL_SLICE="short") as program:
        program.does("allow")
        little = program.does("little")
        assert is_run_soon(little["main"], little["own_ns"])


def test_an_unknown_slice_is_one_sentence(ungil: Run) -> None:
    outcome = ungil("run", "-c", "print(1)", env=os.environ | {"UNGIL_SLICE": "tiny"})
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert outcome.stderr == (
        "ungil: UNGIL_SLICE is 'tiny'; set it to 'own' to leave every thread its own slice of the "
        "processor, to 'short' to shorten slices in a seccomp sandbox too, or unset it\n"
    )
