"""A stream that waits for time alone goes on when the time has come.

Between the question what may start and the question when to come back, the clock goes on. What is
ready in between is nobody else's to start. The moment is short, so each test asks many times.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvloop  # pyright: ignore[reportMissingTypeStubs]

from ungil.fanout import Backoff, Fanout, fanout

TIMES = 60
ITEMS = range(9)
# A few start at once, the others one to three milliseconds apart: what timers count in.
RATE = 400.0
new_loop = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def itself(item: int) -> int:
    return abs(item)


async def slowly() -> AsyncIterator[int]:
    for item in ITEMS:
        yield item


def inputs() -> dict[str, Callable[[], Any]]:
    return {"an iterable": lambda: ITEMS, "an asynchronous iterable": slowly}


@pytest.mark.parametrize("loop", new_loop)
@pytest.mark.parametrize("fn", [itself, abs], ids=["coroutines", "threads"])
@pytest.mark.parametrize("items", inputs().values(), ids=inputs())
def test_a_stream_with_a_rate_comes_to_its_end(
    loop: str, fn: Callable[[int], Any], items: Callable[[], Any]
) -> None:
    async def stream() -> list[int]:
        async with Fanout(rate=RATE) as fan:
            return [outcome.unwrap() async for outcome in fan.stream(fn, items())]

    async def streams() -> None:
        for _ in range(TIMES):
            assert sorted(await stream()) == list(ITEMS)

    with asyncio.Runner(loop_factory=new_loop[loop]) as runner:
        runner.run(streams())


@pytest.mark.parametrize("loop", new_loop)
@pytest.mark.parametrize("fn", [itself, abs], ids=["coroutines", "threads"])
def test_a_stream_with_retries_comes_to_its_end(loop: str, fn: Callable[[Any], Any]) -> None:
    async def stream() -> list[bool]:
        async with Fanout(retries=2, backoff=Backoff(0.002)) as fan:
            return [outcome.ok async for outcome in fan.stream(fn, ["no number", *ITEMS])]

    async def streams() -> None:
        for _ in range(TIMES):
            assert len(await stream()) == len(ITEMS) + 1

    with asyncio.Runner(loop_factory=new_loop[loop]) as runner:
        runner.run(streams())


def test_processes_with_a_rate_come_to_their_end() -> None:
    outcomes = fanout(abs, range(200), engine="processes", rate=RATE)
    assert sorted(outcome.unwrap() for outcome in outcomes) == list(range(200))
