"""Two event loops: coroutines that are on the wrong one are told, others run on either."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lean_loop import coroutine, lean, values

from ungil.fanout import fanout, sleep


def test_who_awaits_asyncio_is_told_the_mode() -> None:
    cleaned: list[int] = []

    async def task(item: int) -> None:
        try:
            await asyncio.Future(loop=loop)
        finally:
            await sleep(0)
            cleaned.append(item)

    loop = asyncio.new_event_loop()
    outcomes = lean(task, range(2))
    loop.close()
    for outcome in outcomes:
        with pytest.raises(RuntimeError, match=r'task\(\) awaits asyncio: pass mode="asyncio"'):
            outcome.unwrap()
    assert cleaned == [0, 1]


def test_who_yields_something_strange_is_told_what() -> None:
    async def task(_: int) -> None:
        await coroutine(5)

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match=r"task\(\) awaits int, which mode=\"lean\" cannot"):
        outcome.unwrap()


def test_who_never_stops_awaiting_asyncio_keeps_nobody_from_working() -> None:
    async def task(item: int) -> int:
        while item == 0:
            with suppress(RuntimeError):
                await coroutine(5)
        await sleep(0.001)
        return item

    outcomes = lean(task, range(3), timeout=0.5)
    assert [outcome.value for outcome in outcomes] == [None, 1, 2]
    assert isinstance(outcomes[0].exception, TimeoutError)


def test_who_misses_asyncio_is_told_the_mode() -> None:
    async def task(_: int) -> None:
        await asyncio.sleep(1)

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="no running event loop") as raised:
        outcome.unwrap()
    assert raised.value.__notes__ == ['mode="lean" runs without asyncio: pass mode="asyncio"']


def test_asyncio_inside_of_a_lean_coroutine_does_not_skip_the_sleep() -> None:
    async def task(_: int) -> None:
        async def inner() -> None:
            await sleep(1)

        asyncio.run(inner())

    (outcome,) = lean(task, [1])
    with pytest.raises(RuntimeError, match="bad yield: <a wait for the lean fan-out"):
        outcome.unwrap()


def test_the_same_coroutine_runs_on_asyncio() -> None:
    async def task(item: float) -> float:
        begin = time.monotonic()
        await sleep(item)
        return time.monotonic() - begin

    (took,) = values(fanout(task, [0.01], mode="asyncio"))
    assert took >= 0.01
    assert asyncio.run(task(0.01)) >= 0.01


Program = str | tuple["str | Program", ...]


def programs() -> st.SearchStrategy[Program]:
    """What a coroutine may do, and do inside of that."""
    steps: st.SearchStrategy[Program] = st.sampled_from(["sleep", "yield", "raise", "leave"])

    def around(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
        return st.one_of(
            st.tuples(st.just("one after the other"), inner, inner),
            st.tuples(st.sampled_from(["call", "catch", "manage", "iterate"]), inner),
            st.tuples(st.just("finally"), inner, inner),
        )

    return st.recursive(steps, around, max_leaves=8)


class Interpreter:
    """Runs a program, and writes down what it does."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def run(self, program: Program) -> None:
        name, *inner = (program,) if isinstance(program, str) else program
        self.log.append(str(name))
        match name, inner:
            case "sleep", _:
                await sleep(0.0001)
            case "yield", _:
                await sleep(0)
            case "raise", _:
                raise ValueError(len(self.log))
            case "leave", _:
                async for _ in self.numbers("yield"):
                    break
            case "catch", [inside]:
                with suppress(ValueError):
                    await self.run(inside)
            case "manage", [inside]:
                async with self.manager():
                    await self.run(inside)
            case "iterate", [inside]:
                async for number in self.numbers(inside):
                    self.log.append(f"number {number}")
            case "finally", [inside, last]:
                try:
                    await self.run(inside)
                finally:
                    await self.run(last)
            case _:
                for inside in inner:
                    await self.run(inside)
        self.log.append(f"end of {name}")

    async def numbers(self, program: Program) -> AsyncIterator[int]:
        try:
            yield 1
            await self.run(program)
            yield 2
        finally:
            await sleep(0)

    @asynccontextmanager
    async def manager(self) -> AsyncGenerator[None]:
        await sleep(0)
        try:
            yield
        finally:
            await sleep(0.0001)
            self.log.append("leave")


@settings(max_examples=60)
@given(st.lists(programs(), max_size=4))
def test_coroutines_do_the_same_as_on_asyncio(items: list[Program]) -> None:
    async def task(program: Program) -> list[str]:
        interpreter = Interpreter()
        try:
            await interpreter.run(program)
        except ValueError as error:
            interpreter.log.append(repr(error))
        return interpreter.log

    expected = values(fanout(task, items, mode="asyncio"))
    assert values(lean(task, items)) == expected
