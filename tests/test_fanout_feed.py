"""Streams whose items come from an asynchronous input, as those of an engine's workers do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ungil.fanout import Fanout, Outcome


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def add_one(number: int) -> int:
    await asyncio.sleep(0)
    return number + 1


def add_one_in_a_thread(number: int) -> int:
    return number + 1


@pytest.mark.parametrize("fn", [add_one, add_one_in_a_thread])
def test_items_come_in_when_only_the_rate_held_them_back(fn: Any) -> None:
    async def values() -> list[int]:
        async with Fanout(rate=200) as fan:
            return [outcome.unwrap() async for outcome in fan.stream(fn, numbers(20))]

    assert sorted(asyncio.run(values())) == list(range(1, 21))


def test_a_thread_is_abandoned_although_nothing_else_happens() -> None:
    go = threading.Event()

    async def one_and_silence() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    async def outcomes() -> list[Outcome]:
        seen: list[Outcome] = []
        async with Fanout(timeout=0.05) as fan:
            async for outcome in fan.stream(lambda _: go.wait(), one_and_silence()):
                seen.append(outcome)
                go.set()
                break
        return seen

    [outcome] = asyncio.run(outcomes())
    assert outcome.abandoned
    assert isinstance(outcome.exception, TimeoutError)
