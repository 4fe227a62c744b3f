"""Fan-out of functions in threads: what no other mode promises."""

# pyright: reportUnknownArgumentType=false
# (a lambda has no types)

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from fanout_contract.modes import THREADS, Way, fanout_threads
from suite import PATIENCE_S, PROGRAMS, run_python

from ungil.fanout import Fanout, fanout


@pytest.fixture(autouse=True)
def _none_is_left() -> Generator[None]:
    yield
    THREADS.settle()


def waits(event: threading.Event) -> None:
    """Waits for an event that the test is going to set."""
    if not event.wait(PATIENCE_S):
        raise RuntimeError("the test has not gone on")


def test_no_items_need_no_thread() -> None:
    before = threading.active_count()
    assert list(fanout(abs, [])) == []
    assert threading.active_count() == before


def test_there_are_no_more_threads_than_items_or_than_the_limit() -> None:
    meeting = threading.Barrier(3)

    def fn(_: int) -> int:
        meeting.wait(PATIENCE_S)
        return len(fanout_threads())

    assert max(outcome.unwrap() for outcome in fanout(fn, range(3), limit=50)) == 3
    assert max(outcome.unwrap() for outcome in fanout(fn, range(30), limit=3)) == 3


class Device:
    """What has something to call."""

    def check(self, item: int) -> int:
        """A bound method."""
        return item

    def __call__(self, item: int) -> int:
        """The object itself."""
        return item


@pytest.mark.parametrize(
    "fn",
    [
        Device().check,
        Device(),
        functools.partial(max, 0),
        abs,
        int,
        lambda item: item,  # pyright: ignore[reportUnknownLambdaType]
    ],
    ids=["bound", "object", "partial", "builtin", "class", "lambda"],
)
def test_anything_can_be_called(fn: Callable[[Any], Any]) -> None:
    outcomes = fanout(fn, [1, 2])
    assert outcomes.mode == "threads"
    assert [outcome.value for outcome in outcomes] == [1, 2]


@pytest.mark.parametrize("way", [Way(THREADS, streams=False), Way(THREADS, streams=True)], ids=str)
def test_nobody_waits_for_threads_whose_time_is_over(way: Way) -> None:
    released = threading.Event()

    async def fn(number: int) -> int:
        if number % 2:
            waits(released)
        return number

    outcomes = way.outcomes(fn, range(6), timeout=0.5, limit=2)
    assert [outcome.abandoned for outcome in outcomes] == [False, True] * 3
    assert len(fanout_threads()) == 3
    released.set()


@pytest.mark.parametrize("how", ["fanout", "Fanout"])
def test_a_program_ends_although_threads_were_abandoned(how: str) -> None:
    words = [sys.executable, "-W", "error", PROGRAMS / "fanout_abandoned.py", how]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("[True, True, True]\n", "", 0)


def test_what_an_abandoned_thread_does_later_changes_nothing() -> None:
    released = threading.Event()

    def late(_: int) -> str:
        waits(released)
        return "too late"

    [outcome] = fanout(late, [0], timeout=0.02)
    released.set()
    THREADS.settle()
    assert isinstance(outcome.exception, TimeoutError)
    assert (outcome.value, outcome.abandoned) == (None, True)


def test_the_loop_of_the_program_goes_on_while_threads_work() -> None:
    async def program() -> int:
        turns = 0
        released = threading.Event()

        async def turning() -> None:
            nonlocal turns
            while turns < 100:
                turns += 1
                await asyncio.sleep(0)
            released.set()

        task = asyncio.create_task(turning())
        async with Fanout() as f:
            assert [one.ok async for one in f.stream(waits, [released] * 3)] == [True] * 3
        await task
        return turns

    assert asyncio.run(program()) == 100


def test_what_is_left_at_the_end_of_the_program_is_waited_for() -> None:
    result = run_python("-X", "dev", PROGRAMS / "fanout_left_in_threads.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(result.stdout.splitlines()) == ["ended 1", "ended 2"]
