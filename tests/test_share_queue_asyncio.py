"""Shared queues in event loops."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trio

from ungil import share


def in_event_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Runs a test as the main task."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def made(maxsize: int = 0) -> share.Queue[Any]:
    return share.Heap(max_size=1 << 24).share(share.Queue[Any](maxsize))


@in_event_loop
async def test_tasks_wait_for_items_of_another_process() -> None:
    q = made()
    tasks = [asyncio.create_task(q.aget()) for _ in range(20)]
    await asyncio.sleep(0)
    child = os.fork()
    if child == 0:
        q.put_many(range(20))
        os._exit(0)
    assert sorted(await asyncio.gather(*tasks)) == list(range(20))
    os.waitpid(child, 0)


@in_event_loop
async def test_tasks_wait_for_room_and_for_each_other() -> None:
    q = made(2)

    async def put() -> None:
        for number in range(50):
            await q.aput(number)

    async def get() -> list[int]:
        return [await q.aget() for _ in range(50)]

    _, got = await asyncio.gather(put(), get())
    assert got == list(range(50))


@in_event_loop
async def test_one_thread_serves_all_tasks_and_ends_with_them() -> None:
    q = made()
    # One that served another test may be about to end.
    before = threading.enumerate()
    tasks = [asyncio.create_task(q.aget()) for _ in range(100)]
    await asyncio.sleep(0)
    new = [it for it in threading.enumerate() if it not in before and it.name == "ungil-share"]
    assert len(new) == 1
    q.put_many(range(100))
    await asyncio.gather(*tasks)
    await asyncio.to_thread(new[0].join)


def test_a_wait_whose_thread_cannot_be_started_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = share.Heap(max_size=1 << 24)
    empty: share.Queue[int] = heap.share(share.Queue[int]())
    q: share.Queue[int] = heap.share(share.Queue[int]())

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await empty.aget()
        before = threading.enumerate()
        task = asyncio.create_task(q.aget())
        await asyncio.sleep(0)
        new = [it for it in threading.enumerate() if it not in before and it.name == "ungil-share"]
        assert len(new) == 1
        q.put(1)
        assert await task == 1
        # It would not end if the wait that failed was still to be served.
        await asyncio.to_thread(new[0].join)

    asyncio.run(main())


@in_event_loop
async def test_a_task_that_is_cancelled_has_taken_nothing() -> None:
    q = made()
    first, second = asyncio.create_task(q.aget()), asyncio.create_task(q.aget())
    await asyncio.sleep(0)
    first.cancel()
    q.put("x")
    assert await second == "x"
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(q.aget(), 0.01)


@in_event_loop
async def test_closing_ends_the_waits_of_tasks() -> None:
    q = made()
    tasks = [asyncio.create_task(q.aget()) for _ in range(3)]
    await asyncio.sleep(0)
    q.close()
    for task in tasks:
        with pytest.raises(share.ShutDown):
            await task


@in_event_loop
async def test_leases_are_waited_for_in_the_same_way() -> None:
    q = made()
    task = asyncio.create_task(q.alease())
    await asyncio.sleep(0)
    q.put(1)
    with await task as item:
        assert item == 1
    assert q.join(timeout=0)


def test_without_an_event_loop_nobody_waits() -> None:
    waits = made().aget()
    with pytest.raises(RuntimeError, match="no running event loop"):
        waits.send(None)


def test_trio_is_served_as_well() -> None:
    q = made()

    async def main() -> object:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(q.aput, "x")
            return await q.aget()

    assert trio.run(main) == "x"
