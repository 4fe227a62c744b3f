"""The loop of `ungil.fanout` that does without asyncio: coroutines and time."""

import decimal
import random
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from lean_loop import coroutine, driven, lean, values
from suite import run_python

from ungil._native import Dispatcher, Lean
from ungil.fanout import sleep


def test_who_sleeps_longer_ends_later() -> None:
    async def task(delay: float) -> float:
        await sleep(delay)
        return delay

    delays = [0.02, 0.0, 0.01, 0.005]
    outcomes = lean(task, delays)
    assert values(outcomes) == delays
    assert sorted(outcomes, key=lambda o: o.finished) == [outcomes[i] for i in (1, 3, 2, 0)]


def test_asyncio_is_not_imported() -> None:
    result = run_python(
        "-X",
        "dev",
        "-c",
        "import sys; from ungil.fanout import fanout, sleep\n"
        "async def task(item): await sleep(0.001); return item\n"
        "outcomes = fanout(task, range(3))\n"
        "print(outcomes.mode, [o.value for o in outcomes])\n"
        "print({'asyncio', 'threading', 'typing', 'socket'} & sys.modules.keys())",
    )
    assert (result.stdout, result.stderr) == ("lean [0, 1, 2]\nset()\n", "")


def test_nobody_wakes_before_its_time() -> None:
    generator = random.Random(5)

    async def task(delays: list[float]) -> bool:
        for delay in delays:
            begin = time.monotonic()
            await sleep(delay)
            if time.monotonic() < begin + delay:
                return False
        return True

    delays = [[generator.random() / 50 for _ in range(3)] for _ in range(500)]
    assert all(values(lean(task, delays)))


def test_a_sleep_of_nothing_lets_the_others_go_first() -> None:
    steps: list[tuple[str, int]] = []

    async def task(name: str) -> None:
        for step in range(3):
            steps.append((name, step))
            await sleep(-step)

    lean(task, "ab")
    assert steps == [(name, step) for step in range(3) for name in "ab"]


def test_a_hundred_thousand_sleep_at_once() -> None:
    running = most = 0

    async def task(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 100_000:
            await sleep(0.4)
        running -= 1

    assert len(values(lean(task, range(100_000), limit=100_000))) == 100_000


def test_coroutines_that_never_wait_are_no_recursion() -> None:
    async def task(item: int) -> int:
        return item

    assert values(lean(task, range(50_000), limit=1)) == list(range(50_000))


def test_coroutines_that_never_wait_let_sleepers_wake() -> None:
    woken = False

    async def task(item: int) -> None:
        nonlocal woken
        if item == 0:
            await sleep(1e-6)
            woken = True

    def items() -> Iterator[int]:
        item = 0
        while not woken:
            yield item
            item += 1

    dispatcher = Dispatcher(items(), limit=2, window=10**9, in_order=True)
    loop = Lean(task, dispatcher, None)
    while not dispatcher.ended:
        loop.advance()
    assert woken


@asynccontextmanager
async def entered(steps: list[str]) -> AsyncGenerator[None]:
    await sleep(0)
    steps.append("enter")
    try:
        yield
    finally:
        await sleep(0)
        steps.append("leave")


def test_exceptions_pass_through_context_managers_with_their_traceback() -> None:
    steps: list[str] = []

    async def inner() -> None:
        await sleep(0.001)
        raise ValueError("inside")

    async def task(_: int) -> None:
        async with entered(steps):
            await inner()

    (outcome,) = lean(task, [1])
    assert isinstance(outcome.exception, ValueError)
    names = [frame.name for frame in traceback.extract_tb(outcome.exception.__traceback__)]
    assert names[0] == "task"
    assert names[-1] == "inner"
    assert steps == ["enter", "leave"]


def test_a_decimal_precision_is_that_of_one_item() -> None:
    async def task(digits: int) -> str:
        with decimal.localcontext() as context:
            context.prec = digits
            await sleep(0)
            return str(decimal.Decimal(1) / 3)

    assert values(lean(task, [2, 5, 3])) == ["0.33", "0.33333", "0.333"]


def test_a_generator_that_is_left_is_closed_by_the_loop() -> None:
    steps: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await sleep(0.001)
            steps.append("closed")

    async def task(_: int) -> int:
        async for number in numbers():
            return number
        return 0

    assert values(lean(task, range(2))) == [1, 1]
    assert steps == ["closed", "closed"]


def test_whatever_can_be_awaited_can_be_run() -> None:
    assert values(driven(coroutine, [None])) == ["done"]
    assert values(driven(sleep, [0, 0.001])) == [None, None]


def test_who_yields_nothing_lets_others_go_first() -> None:
    async def task(_: int) -> str:
        return await coroutine(None, None)

    assert values(lean(task, range(3))) == ["done"] * 3


def numbers_by_mistake(_: object) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (str, r"str\(\) returned '1', which cannot be awaited"),
        (numbers_by_mistake, r"numbers_by_mistake\(\) returned <generator .* cannot be awaited"),
    ],
)
def test_what_returns_no_awaitable_is_told_so(fn: Callable[[Any], Any], message: str) -> None:
    (outcome,) = driven(fn, [1])
    with pytest.raises(TypeError, match=message):
        outcome.unwrap()


def test_what_raises_before_it_can_be_awaited_has_failed() -> None:
    (outcome,) = driven(int, ["x"])
    assert isinstance(outcome.exception, ValueError)


def test_each_wait_is_for_once() -> None:
    async def task(_: int) -> None:
        nap = sleep(0)
        await nap
        await nap

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="awaited already"):
        outcome.unwrap()


@pytest.mark.parametrize(("seconds", "kind"), [(float("nan"), ValueError), ("1", TypeError)])
def test_only_a_number_of_seconds_can_be_slept(seconds: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sleep(seconds)
