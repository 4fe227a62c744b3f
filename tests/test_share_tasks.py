"""`atomic()` in tasks: what is in the block, and nothing else, is in the transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import Context

import greenlet
import pytest
import uvloop

from ungil import share
from ungil.fanout import fanout, sleep

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.new_event_loop,
    uvloop.new_event_loop,
]
LEFT = r"^an await left this block of atomic\(\) before its end"


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 22)


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    def in_a_loop(program: Awaitable[None]) -> None:
        loop: asyncio.AbstractEventLoop = request.param()
        try:
            loop.run_until_complete(program)
        finally:
            loop.close()

    return in_a_loop


@contextmanager
def undone(heap: share.Heap, error: type[Exception] = RuntimeError) -> Generator[None]:
    """A block of `atomic()` that ends with an exception: by default that it was left."""
    with pytest.raises(error, match=LEFT if error is RuntimeError else None), heap.atomic():
        yield


def found(heap: share.Heap) -> dict[str, object]:
    return heap.root.copy()


def test_an_await_in_a_block_undoes_it_and_says_so(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def program() -> None:
        with undone(heap):
            heap.root["inside"] = 1
            await asyncio.sleep(0)

    run(program())
    assert found(heap) == {}
    with heap.atomic():
        heap.root["after"] = 1
    assert found(heap) == {"after": 1}


def test_what_other_tasks_do_meanwhile_stays_and_what_the_block_does_later_is_refused(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def program() -> None:
        gone, come = asyncio.Event(), asyncio.Event()

        async def leave() -> None:
            with undone(heap):
                heap.root["inside"] = 1
                gone.set()
                await come.wait()
                heap.root["later"] = 1

        async def use() -> None:
            await gone.wait()
            heap.root["theirs"] = 1
            with heap.atomic():
                heap.root["a whole one"] = 1
            come.set()

        await asyncio.gather(leave(), use())

    run(program())
    assert found(heap) == {"theirs": 1, "a whole one": 1}


def test_of_tasks_that_were_to_run_already_none_is_in_the_block(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        # Before what looks after the block, as that comes with the block.
        loop.call_soon(heap.root.__setitem__, "called", 1)
        with undone(heap):
            heap.root["inside"] = 1
            await asyncio.sleep(0)

    run(program())
    assert found(heap) == {"called": 1}


def test_blocks_without_an_await_work_in_many_tasks(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    heap.root["a"] = heap.root["b"] = 0

    async def work() -> None:
        for _ in range(20):
            with heap.atomic():
                heap.root.incr("a")
                with heap.atomic():
                    heap.root.incr("b")
            await asyncio.sleep(0)

    async def program() -> None:
        await asyncio.gather(*(work() for _ in range(20)))

    run(program())
    assert found(heap) == {"a": 400, "b": 400}


def test_a_block_around_a_whole_loop_has_all_of_its_tasks_in_it(heap: share.Heap) -> None:
    async def put(key: str) -> None:
        await asyncio.sleep(0)
        heap.root[key] = 1

    async def program() -> None:
        await asyncio.gather(put("a"), put("b"))

    with undone(heap, LookupError):
        asyncio.run(program())
        assert found(heap) == {"a": 1, "b": 1}
        raise LookupError
    assert found(heap) == {}


def test_inner_blocks_are_undone_with_the_outer_one(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def program() -> None:
        with undone(heap):
            heap.root["outer"] = 1
            with heap.atomic():
                heap.root["inner"] = 1
                await asyncio.sleep(0)

    run(program())
    assert found(heap) == {}


def test_an_exception_of_the_block_is_not_replaced(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def program() -> None:
        with undone(heap, LookupError):
            heap.root["inside"] = 1
            await asyncio.sleep(0)
            raise LookupError

    run(program())
    assert found(heap) == {}


def test_a_task_that_is_cancelled_in_its_block_has_not_begun_it(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    async def stay() -> None:
        with heap.atomic():
            heap.root["inside"] = 1
            await asyncio.Event().wait()

    async def program() -> None:
        task = asyncio.create_task(stay())
        await asyncio.sleep(0)
        heap.root["theirs"] = 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        heap.root["after"] = 1

    run(program())
    assert found(heap) == {"theirs": 1, "after": 1}


def test_a_greenlet_is_not_in_the_block_of_another_one(heap: share.Heap) -> None:
    def leave() -> None:
        with undone(heap):
            heap.root["inside"] = 1
            main.switch()
            heap.root["later"] = 1

    main = greenlet.getcurrent()
    other = greenlet.greenlet(leave)
    other.switch()
    heap.root["theirs"] = 1
    other.switch()
    assert found(heap) == {"theirs": 1}


def test_an_item_of_a_fan_out_is_not_in_the_block_of_another_one(heap: share.Heap) -> None:
    async def work(name: str) -> None:
        if name == "leaves":
            with heap.atomic():
                heap.root["inside"] = 1
                await sleep(0.001)
                heap.root["later"] = 1
        else:
            heap.root[name] = 1

    left, other = sorted(
        fanout(work, ["leaves", "theirs"], mode="lean"), key=lambda outcome: str(outcome.item)
    )
    assert other.ok
    assert isinstance(left.exception, RuntimeError)
    assert found(heap) == {"theirs": 1}


def test_code_in_a_context_of_its_own_is_not_in_the_block(heap: share.Heap) -> None:
    with undone(heap):
        heap.root["inside"] = 1
        Context().run(heap.root.__setitem__, "apart", 1)
    assert found(heap) == {"apart": 1}


def test_reading_in_another_task_sees_nothing_of_the_block(
    heap: share.Heap, run: Callable[[Awaitable[None]], None]
) -> None:
    heap.root["a"] = "before"
    seen: list[object] = []

    async def program() -> None:
        asyncio.get_running_loop().call_soon(lambda: seen.append(heap.root["a"]))
        with undone(heap):
            heap.root["a"] = "inside"
            await asyncio.sleep(0)

    run(program())
    assert seen == ["before"]
