"""The loop without asyncio: ends before their time, threads, forks."""

import errno
import gc
import os
import signal
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from blocked import wait_until_in_its_loop
from lean_loop import lean, values
from suite import PROGRAMS, run_python

from ungil._native import Dispatcher, Lean
from ungil.fanout import Cancelled, fanout, sleep, wait_writable

# Ends before their time


def test_a_timeout_lets_the_coroutine_clean_up_and_says_where_it_was() -> None:
    cleaned: list[int] = []

    async def hang() -> None:
        await sleep(float("inf"))

    async def task(item: int) -> None:
        try:
            await hang()
        except Exception:  # A cancellation is none.
            cleaned.append(-1)
        finally:
            await sleep(0.001)
            cleaned.append(item)

    outcomes = lean(task, range(3), timeout=0.01, retries=1)
    assert sorted(cleaned) == [0, 0, 1, 1, 2, 2]
    for outcome in outcomes:
        error = outcome.exception
        assert isinstance(error, TimeoutError)
        assert str(error) == "not done within 0.01 s"
        assert isinstance(error.__cause__, Cancelled)
        where = traceback.extract_tb(error.__cause__.__traceback__)
        assert [frame.name for frame in where] == ["task", "hang"]
        assert outcome.attempts == 2
        assert not outcome.abandoned


def test_who_catches_its_cancellation_and_returns_has_timed_out_all_the_same() -> None:
    async def task(_: int) -> str:
        with suppress(Cancelled):
            await sleep(10)
        return "late"

    (outcome,) = lean(task, [1], timeout=0.01)
    assert isinstance(outcome.exception, TimeoutError)
    assert outcome.exception.__notes__ == ["it caught its cancellation, and returned"]


def test_what_fails_while_it_is_cancelled_is_the_cause() -> None:
    async def task(_: int) -> None:
        try:
            await sleep(10)
        finally:
            raise ValueError("in the middle of cleaning up")

    (outcome,) = lean(task, [1], timeout=0.01)
    assert isinstance(outcome.exception, TimeoutError)
    assert isinstance(outcome.exception.__cause__, ValueError)
    assert isinstance(outcome.exception.__cause__.__context__, Cancelled)


def test_who_does_not_end_is_given_up() -> None:
    async def task(_: int) -> None:
        while True:
            try:
                await sleep(0.01)
            except Cancelled:
                caught.append(1)

    caught: list[int] = []
    outcomes = lean(task, [1], timeout=0.01)
    assert isinstance(outcomes[0].exception, TimeoutError)
    assert outcomes[0].abandoned
    # Once by its timeout, and once by the end of everything.
    assert caught == [1, 1]


class Alarm(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], None]]:
    """Raises Alarm in the main thread, as soon as that waits for the system."""

    def ring(*_: object) -> None:
        raise Alarm

    def wait_and_ring() -> None:
        wait_until_in_its_loop(os.getpid())
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, ring)
    thread = threading.Thread(target=wait_and_ring)
    yield thread.start
    thread.join()
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_a_wait_and_everything_cleans_up(alarm: Callable[[], None]) -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            if item == 2:
                alarm()
            await sleep(1000)
        finally:
            await sleep(0.001)
            cleaned.append(item)

    with pytest.raises(Alarm):
        lean(task, range(3))
    assert cleaned == [0, 1, 2]


def test_ctrl_c_inside_of_a_coroutine_ends_the_fan_out() -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            await sleep(0 if item == 1 else 1000)
            signal.raise_signal(signal.SIGINT)
        finally:
            cleaned.append(item)

    with pytest.raises(KeyboardInterrupt):
        lean(task, range(3))
    assert cleaned == [1, 0, 2]


@pytest.mark.parametrize("end", ["nothing", "exit", "del"])
def test_what_is_left_at_the_end_of_the_program_ends_quietly(end: str) -> None:
    result = run_python("-X", "dev", PROGRAMS / "fanout_left.py", end)
    assert (result.stdout, result.stderr) == ("cleaned 0\ncleaned 1\ncleaned 2\n", "")


def test_what_only_refers_to_itself_is_collected() -> None:
    class Tracked:
        pass

    async def task(item: Any) -> None:
        await sleep(1000 if item else 0)

    def leave() -> "weakref.ref[Tracked]":
        tracked = Tracked()
        items: list[Any] = [None, tracked]
        outcomes = fanout(task, items, mode="lean")
        next(outcomes)
        # Its item, in the frame of a coroutine that it drives, refers to it.
        cast("Any", tracked).outcomes = outcomes
        return weakref.ref(tracked)

    reference = leave()
    gc.collect()
    assert reference() is None


# Inside of each other, threads, forks


def test_a_loop_that_was_closed_begins_anew() -> None:
    async def task(item: int) -> int:
        await sleep(1000 if item == 0 else 0)
        return item

    dispatcher = Dispatcher(iter(range(4)), limit=2, window=10, in_order=False)
    loop = Lean(task, dispatcher, 60)
    loop.advance()
    loop.close()
    while not dispatcher.ended:
        loop.advance()
    outcomes = [dispatcher.take() for _ in range(4)]
    assert sorted(o.index for o in outcomes if o is not None and o.ok) == [1, 2, 3]


def test_a_fan_out_in_a_lean_coroutine_is_refused() -> None:
    async def inner(item: int) -> int:
        return item

    async def task(_: int) -> list[int]:
        return values(lean(inner, [1]))

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="a fan-out inside a coroutine of a lean fan-out"):
        outcome.unwrap()


def test_an_item_cannot_iterate_its_own_fan_out() -> None:
    async def task(_: int) -> None:
        loop.advance()

    dispatcher = Dispatcher(iter([1]), limit=1, window=1, in_order=True)
    loop = Lean(task, dispatcher, None)
    loop.advance()
    outcome = dispatcher.take()
    assert outcome is not None
    with pytest.raises(RuntimeError, match="this fan-out is already being iterated"):
        outcome.unwrap()


def test_each_thread_has_loops_of_its_own() -> None:
    async def task(item: int) -> int:
        await sleep(0.001)
        return item

    results: list[list[int]] = []

    def work() -> None:
        results.append(values(lean(task, range(200))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(200))] * 4


def test_other_threads_run_while_a_loop_waits() -> None:
    arrived = threading.Event()

    async def task(_: int) -> bool:
        while not arrived.is_set():
            await sleep(0.001)
        return True

    thread = threading.Thread(target=arrived.set)
    outcomes = fanout(task, [1], mode="lean")
    thread.start()
    assert values(outcomes) == [True]
    thread.join()


def test_a_forked_child_does_not_go_on_with_its_parents_items() -> None:
    result = run_python("-X", "dev", PROGRAMS / "fanout_forked.py")
    said = (
        "this fan-out belongs to process PARENT, which forked this one: end a forked child with "
        "os._exit(), or use subprocess"
    )
    cleaned = [f"cleaned {item}" for item in range(3)]
    assert sorted(result.stdout.splitlines()) == sorted(
        ["forked", said, *cleaned, "[0, 1, 2]", "7"]
    )
    assert "Error" not in result.stderr


def test_a_loop_is_left_in_the_thread_that_made_it_or_another() -> None:
    async def task(item: int) -> int:
        await sleep(0.001)
        return item

    outcomes = fanout(task, range(5), mode="lean", limit=1)
    got = [next(outcomes).value]
    thread = threading.Thread(target=lambda: got.extend(values(outcomes)))
    thread.start()
    thread.join()
    assert got == [0, 1, 2, 3, 4]


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_what_cannot_be_waited_for_has_its_errno() -> None:
    async def waits(descriptor: int) -> None:
        await wait_writable(descriptor)

    # The kernel gives out the lowest numbers first.
    (outcome,) = fanout(waits, [999_999], mode="lean")
    assert isinstance(outcome.exception, OSError)
    assert outcome.exception.errno == errno.EBADF
    assert outcome.exception.strerror == os.strerror(errno.EBADF)


def test_descriptors_are_given_back() -> None:
    readable, writable = os.pipe()

    async def task(_: int) -> None:
        await wait_writable(writable)
        opened.append(len(descriptors()))

    opened: list[int] = []
    before = len(descriptors())
    lean(task, range(3))
    assert min(opened) > before
    assert len(descriptors()) == before
    os.close(readable)
    os.close(writable)
