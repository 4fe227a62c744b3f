"""`Fanout`: what it promises in a program with an event loop of its own."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing

import pytest
from fanout_contract.items import Waiting
from fanout_contract.modes import Event, Mode, nothing_runs

# How many outcomes wait at most for whoever takes them.
WINDOW = 10_000


def test_a_stream_gives_outcomes_as_they_end(streaming: Mode) -> None:
    async def stream() -> list[tuple[int, int]]:
        events = [streaming.event() for _ in range(10)]
        events[-1].set()

        async def fn(number: int) -> int:
            await events[number].wait()
            return number

        seen: list[tuple[int, int]] = []
        async with streaming.streaming() as fan:
            async for outcome in streaming.stream(fan, fn, range(10)):
                seen.append((outcome.index, outcome.unwrap()))
                events[outcome.index - 1].set()
        return seen

    assert streaming.run(stream()) == [(number, number) for number in reversed(range(10))]


def test_what_the_input_raises_comes_after_the_outcomes_before_it(streaming: Mode) -> None:
    def items() -> Generator[int]:
        yield from range(3)
        raise OSError("the list of hosts broke off")

    seen: list[int] = []

    async def stream() -> None:
        async with streaming.streaming() as fan:
            async for outcome in streaming.stream(fan, streaming.itself, items()):
                seen.append(outcome.unwrap())

    with pytest.raises(OSError, match="broke off"):
        streaming.run(stream())
    assert sorted(seen) == [0, 1, 2]


# Asynchronous input.


def test_input_may_be_asynchronous_and_slow(streaming: Mode) -> None:
    async def stream() -> list[int]:
        answered = asyncio.Event()
        seen: list[int] = []

        async def items() -> AsyncGenerator[int]:
            for number in range(5):
                yield number
                # An outcome comes although the next item does not.
                await answered.wait()
                answered.clear()

        async with streaming.streaming(limit=2) as fan:
            async for outcome in streaming.stream(fan, streaming.itself, items()):
                seen.append(outcome.unwrap())
                answered.set()
        return seen

    assert streaming.run(stream()) == list(range(5))


def test_asynchronous_input_is_taken_as_it_is_needed(streaming: Mode) -> None:
    async def stream() -> int:
        last = 0

        async def items() -> AsyncGenerator[int]:
            nonlocal last
            for last in itertools.count():
                yield last

        async with (
            streaming.streaming(limit=10) as fan,
            aclosing(streaming.stream(fan, streaming.itself, items())) as outcomes,
        ):
            taken = 0
            async for _ in outcomes:
                taken += 1
                if taken == 3000:
                    break
        return last

    assert streaming.run(stream()) < 3000 + WINDOW


def test_what_asynchronous_input_raises_comes_after_the_outcomes_before_it(
    streaming: Mode,
) -> None:
    async def stream() -> list[int]:
        seen: list[int] = []

        async def items() -> AsyncGenerator[int]:
            yield 1
            await asyncio.sleep(0)
            yield 2
            raise OSError("the inventory broke off")

        with pytest.raises(OSError, match="broke off"):  # noqa: PT012
            async with streaming.streaming(limit=1) as fan:
                async for outcome in streaming.stream(fan, streaming.itself, items()):
                    seen.append(outcome.unwrap())
        return seen

    assert streaming.run(stream()) == [1, 2]


# The context.


def test_functions_see_the_context_in_which_the_stream_began(streaming: Mode) -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    async def fn(_: int) -> str:
        return variable.get()

    async def stream() -> list[str]:
        variable.set("the stream's")
        async with streaming.streaming() as fan:
            stream = streaming.stream(fan, fn, range(2))
            return [outcome.unwrap() async for outcome in stream]

    assert streaming.run(stream()) == ["the stream's"] * 2


# Ends.


def test_leaving_the_block_ends_what_runs_or_waits_for_it_and_starts_nothing_more(
    streaming: Mode,
) -> None:
    async def stream() -> None:
        waiting = Waiting(streaming)
        async with streaming.streaming(limit=5) as fan:
            async for outcome in streaming.stream(fan, waiting.fn, itertools.count()):
                assert outcome.index == 0
                streaming.release_in_loop(waiting.released)
                break
        await nothing_runs()
        waiting.check()

    streaming.run(stream())


def test_when_a_stream_was_closed_its_fanout_can_be_used_again(streaming: Mode) -> None:
    async def stream() -> None:
        async with streaming.streaming(limit=5) as fan:
            for _ in range(2):
                waiting = Waiting(streaming)
                stream = streaming.stream(fan, waiting.fn, itertools.count())
                async with aclosing(stream) as outcomes:
                    assert (await anext(outcomes)).value == 0
                    streaming.release_in_loop(waiting.released)
                await nothing_runs()
                waiting.check()

    streaming.run(stream())


def test_an_error_in_the_block_is_raised_after_everything_has_ended(streaming: Mode) -> None:
    async def stream() -> None:
        waiting = Waiting(streaming)
        with pytest.raises(LookupError, match="wrong value 0"):  # noqa: PT012
            async with streaming.streaming(limit=5) as fan:
                async for outcome in streaming.stream(fan, waiting.fn, itertools.count()):
                    streaming.release_in_loop(waiting.released)
                    raise LookupError(f"wrong value {outcome.value}")
        await nothing_runs()
        waiting.check()

    streaming.run(stream())


def test_cancelling_whoever_consumes_ends_what_runs(streaming: Mode) -> None:
    async def all_of_it() -> None:
        waiting = Waiting(streaming)
        first = asyncio.Event()

        async def consume() -> None:
            async with streaming.streaming(limit=5) as fan:
                async for _ in streaming.stream(fan, waiting.fn, itertools.count()):
                    first.set()

        consumer = asyncio.create_task(consume())
        await first.wait()
        consumer.cancel()
        # It is cancelled in the next turn of the loop, and waits in the one after that.
        await asyncio.sleep(0)
        streaming.release_in_loop(waiting.released)
        with pytest.raises(asyncio.CancelledError):
            await consumer
        await nothing_runs()
        waiting.check()

    streaming.run(all_of_it())


def test_two_streams_of_one_fanout_run_beside_each_other(streaming: Mode) -> None:
    async def stream() -> None:
        here, there = streaming.event(), streaming.event()

        async def meet(mine_and_other: tuple[Event, Event]) -> None:
            mine, other = mine_and_other
            mine.set()
            await other.wait()

        async with streaming.streaming() as fan:

            async def consume(item: tuple[Event, Event]) -> int:
                stream = streaming.stream(fan, meet, [item])
                return sum([outcome.ok async for outcome in stream])

            both = asyncio.gather(consume((here, there)), consume((there, here)))
            assert await both == [1, 1]

    streaming.run(stream())
