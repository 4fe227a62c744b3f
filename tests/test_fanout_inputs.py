"""The input of a fan-out in threads, which a thread of its own reads."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import pytest
from blocked import wait_until_in_a_lock
from fanout_contract.modes import THREADS, fanout_threads
from suite import PATIENCE_S, PROGRAMS
from terminals import Start

from ungil._native import Dispatcher
from ungil.fanout import Backoff, Fanout, Stopped, fanout


@pytest.fixture(autouse=True)
def _none_is_left() -> Generator[None]:
    yield
    THREADS.settle()


def waits(event: threading.Event) -> None:
    """Waits for an event that the test is going to set."""
    if not event.wait(PATIENCE_S):
        raise RuntimeError("the test has not gone on")


def test_outcomes_come_while_the_input_waits() -> None:
    has_come = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        waits(has_come)
        yield 1

    outcomes = fanout(abs, items(), mode="threads")
    assert next(outcomes).item == 0
    has_come.set()
    assert [outcome.item for outcome in outcomes] == [1]


def test_an_items_time_is_over_while_the_input_waits() -> None:
    has_come = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        waits(has_come)

    def fn(_: int) -> None:
        waits(has_come)

    outcomes = fanout(fn, items(), timeout=0.05)
    assert isinstance(next(outcomes).exception, TimeoutError)
    has_come.set()
    assert list(outcomes) == []


def test_an_item_is_tried_again_while_the_input_waits() -> None:
    has_come = threading.Event()
    tries = itertools.count(1)

    def items() -> Iterator[int]:
        yield 0
        waits(has_come)

    def fn(_: int) -> int:
        if (number := next(tries)) < 3:
            raise ConnectionError
        return number

    outcomes = fanout(fn, items(), mode="threads", retries=2, backoff=Backoff(0.001))
    assert next(outcomes).value == 3
    has_come.set()
    assert list(outcomes) == []


def test_one_thread_reads_all_of_the_input_and_runs_no_item() -> None:
    readers: set[threading.Thread] = set()

    def items() -> Iterator[int]:
        for number in range(100):
            readers.add(threading.current_thread())
            yield number

    ran = {outcome.value for outcome in fanout(lambda _: threading.current_thread(), items())}
    [reader] = readers
    assert reader.name == "fanout-input"
    assert reader not in ran | {threading.current_thread()}


def test_what_only_one_thread_may_use_can_be_the_input() -> None:
    def rows() -> Iterator[tuple[int]]:
        with sqlite3.connect(":memory:") as database:
            database.execute("create table numbers (number)")
            database.executemany("insert into numbers values (?)", [(n,) for n in range(50)])
            yield from database.execute("select number from numbers order by number")

    outcomes = fanout(lambda row: row[0], rows(), limit=5)
    assert [outcome.unwrap() for outcome in outcomes] == list(range(50))


@pytest.mark.parametrize(
    "items", [[1, 2], (1, 2), {1, 2}, range(1, 3), {1: 0, 2: 0}, {0: 1, 1: 2}.values(), b"\1\2"]
)
def test_a_collection_needs_no_thread_that_reads_it(items: Iterable[int]) -> None:
    def names(_: int) -> list[str]:
        return [thread.name for thread in fanout_threads()]

    outcomes = list(fanout(names, items, mode="threads"))
    assert sorted(outcome.item for outcome in outcomes) == [1, 2]
    assert not any("fanout-input" in outcome.unwrap() for outcome in outcomes)


def test_no_more_items_are_read_ahead_than_run() -> None:
    limit = 3
    done = itertools.count(1)
    so_far = 0
    ahead: list[int] = []

    def items() -> Iterator[int]:
        for number in range(200):
            ahead.append(number - so_far)
            yield number

    def fn(_: int) -> None:
        nonlocal so_far
        so_far = next(done)

    assert sum(outcome.ok for outcome in fanout(fn, items(), limit=limit)) == 200
    # Those that run, those in stock, and those that have just ended and do not count yet.
    assert max(ahead) <= 3 * limit


def dispatcher(items: Iterable[Any]) -> Dispatcher:
    return Dispatcher(iter(items), limit=1, window=10, in_order=True, is_read_apart=True)


def test_what_was_read_and_has_not_begun_is_not_lost_by_a_stop() -> None:
    it = dispatcher("abc")
    assert [it.read(), it.read()] == [True, True]
    running = it.next()
    assert running is not None
    it.stop(Stopped("not run"))
    assert it.succeeded(running, 1) is None
    taken = [outcome for outcome in (it.take(), it.take(), it.take()) if outcome is not None]
    assert [(outcome.item, outcome.ok) for outcome in taken] == [("a", True), ("b", False)]
    assert isinstance(taken[1].exception, Stopped)
    assert it.ended
    assert it.failures == [("Stopped", 1)]


def test_what_was_being_read_when_everything_was_stopped_has_an_outcome_and_no_more_is_read() -> (
    None
):
    read: list[str] = []

    def items() -> Iterator[str]:
        for item in "abc":
            if item == "b":
                it.stop(Stopped("not run"))
            read.append(item)
            yield item

    it = dispatcher(items())
    assert it.read()
    running = it.next()
    assert running is not None
    assert [it.read(), it.read()] == [False, False]
    assert it.succeeded(running, 1) is None
    taken = [outcome for outcome in (it.take(), it.take(), it.take()) if outcome is not None]
    assert [(outcome.item, outcome.ok) for outcome in taken] == [("a", True), ("b", False)]
    assert read == ["a", "b"]


def test_what_the_input_raises_comes_after_what_was_read_before() -> None:
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise OSError("no more pages")

    it = dispatcher(items())
    assert [it.read(), it.read(), it.read()] == [True, True, False]
    running = it.next()
    for number in range(2):
        assert running is not None
        assert running.item == number
        running = it.succeeded(running, None)
        outcome = it.take()
        assert outcome is not None
        assert outcome.item == number
    assert running is None
    with pytest.raises(OSError, match="no more pages"):
        it.take()


def test_the_input_sees_the_context_of_the_caller() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    def items() -> Iterator[str]:
        yield user.get()

    user.set("ana")
    assert [outcome.value for outcome in fanout(str.upper, items())] == ["ANA"]


def test_the_loop_of_the_program_goes_on_while_the_input_waits() -> None:
    async def program() -> list[int]:
        has_come = threading.Event()

        def items() -> Iterator[int]:
            yield 0
            waits(has_come)
            yield 1

        taken: list[int] = []
        async with Fanout() as f:
            async for outcome in f.stream(abs, items()):
                taken.append(outcome.unwrap())
                has_come.set()
        return taken

    assert asyncio.run(program()) == [0, 1]


def test_an_input_that_is_left_is_not_read_on() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            read.append(number)
            yield number

    with fanout(abs, items(), limit=2) as outcomes:
        assert next(outcomes).item == 0
    THREADS.settle()
    so_far = len(read)
    assert fanout_threads() == []
    assert read == list(range(so_far))


def test_ctrl_c_ends_a_fan_out_whose_input_waits(start: Start) -> None:
    process: subprocess.Popen[str] = start(
        args=[sys.executable, str(PROGRAMS / "fanout_input_waits.py")]
    )
    assert process.stdout is not None
    assert [process.stdout.readline(), process.stdout.readline()] == ["0\n", "1\n"]
    wait_until_in_a_lock(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (stdout, stderr, process.returncode) == ("interrupted [0, 1]\n", "", 0)
