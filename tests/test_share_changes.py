"""Waiting until a shared object has changed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 24)


CHANGES: list[tuple[object, Callable[[Any], object]]] = [
    ({"a": 1}, lambda it: it.__setitem__("a", 2)),
    ({"a": 1}, lambda it: it.update(b=[])),
    ({"a": 1}, lambda it: it.incr("a")),
    ([1], lambda it: it.append("x")),
    ([1], lambda it: it.__setitem__(0, 2)),
    ({1}, lambda it: it.add(2)),
    (deque([1]), lambda it: it.popleft()),
]


@pytest.mark.parametrize(("made", "change"), CHANGES)
def test_every_change_counts_and_wakes_who_waits(
    heap: share.Heap, made: object, change: Callable[[Any], object]
) -> None:
    shared: Any = heap.share(made)
    seen = share.version(shared)
    assert share.version(shared) == seen
    assert share.wait_for_change(shared, seen, timeout=0.01) == seen
    child = os.fork()
    if child == 0:
        change(shared)
        os._exit(0)
    assert share.wait_for_change(shared, seen, timeout=60) != seen
    os.waitpid(child, 0)


def test_what_has_changed_before_is_not_waited_for(heap: share.Heap) -> None:
    shared: share.dict[str, int] = heap.share({"a": 1})
    seen = share.version(shared)
    shared["a"] = 2
    assert share.wait_for_change(shared, seen) == share.version(shared) != seen
    with heap.atomic():
        shared["a"] = 3
        with pytest.raises(RuntimeError, match="transaction"):
            share.wait_for_change(shared, share.version(shared))


def test_only_containers_have_versions(heap: share.Heap) -> None:
    others: list[object] = [share.Lock(), share.Queue[int](), share.array(2), share.buffer(b"ab")]
    for other in others:
        shared = heap.share(other)
        with pytest.raises(TypeError, match="a lock, a queue, an array or a buffer"):
            share.version(shared)
        with pytest.raises(TypeError, match="only containers"):
            share.wait_for_change(shared, 0, timeout=0)
        with pytest.raises(TypeError, match="only containers"):
            asyncio.run(share.await_change(shared, 0))
    with pytest.raises(TypeError, match="dict is not a shared object"):
        share.version({})


def test_a_key_is_waited_for(heap: share.Heap) -> None:
    settings: share.dict[str, Any] = heap.share({"level": 1})
    assert settings.wait_for("level") == 1
    with pytest.raises(TimeoutError, match=r"'level' did not change within 0\.01 s"):
        settings.wait_for("level", 1, timeout=0.01)
    with pytest.raises(TimeoutError):
        settings.wait_for("mode", timeout=0.01)
    child = os.fork()
    if child == 0:
        settings["other"] = 1
        settings["level"] = 2
        settings["mode"] = {"a": 1}
        os._exit(0)
    assert settings.wait_for("level", 1, timeout=60) == 2
    assert settings.wait_for("mode", timeout=60) == {"a": 1}
    os.waitpid(child, 0)


def test_tasks_wait_for_changes(heap: share.Heap) -> None:
    settings: share.dict[str, Any] = heap.share({"level": 1})

    async def main() -> None:
        seen = share.version(settings)
        waits = [
            asyncio.create_task(share.await_change(settings, seen)),
            asyncio.create_task(settings.await_for("level", 1)),
            asyncio.create_task(settings.await_for("mode")),
        ]
        await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            settings["level"] = 2
            settings["mode"] = "x"
            os._exit(0)
        changed, *values = await asyncio.gather(*waits)
        assert changed != seen
        assert values == [2, "x"]
        os.waitpid(child, 0)

    asyncio.run(main())


def test_a_publisher_that_is_killed_keeps_nobody_waiting(heap: share.Heap) -> None:
    settings: share.dict[str, int] = heap.share({"level": 0})
    child = os.fork()
    if child == 0:
        while True:
            settings["level"] += 1
    settings.wait_for("level", 0, timeout=60)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    last = settings["level"]
    thread = threading.Thread(target=settings.wait_for, args=("level", last))
    thread.start()
    settings["level"] = last + 1
    thread.join()
