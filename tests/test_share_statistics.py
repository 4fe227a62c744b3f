"""What a program is told of its own heap, and `import *`."""

from __future__ import annotations

import builtins
import dataclasses
import os
import time
from typing import Any

import pytest

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 22)


def test_contents_are_counted_by_type(heap: share.Heap) -> None:
    heap.root.clear()  # the root is made when it is wanted
    before = heap.statistics().contents
    heap.root["a"] = [[1], {2}, {"b": 3}]
    after = heap.statistics().contents
    assert before is not None
    assert after is not None
    more = {
        name: after.types[name].objects - before.types[name].objects
        for name in after.types
        if after.types[name] != before.types[name]
    }
    assert more == {"dict": 1, "list": 2, "set": 1}
    assert after.types["list"].bytes > 0
    assert after.taken_bytes > before.taken_bytes
    assert after.lost_bytes == 0


def test_what_a_collection_would_free_is_lost_until_it_does(heap: share.Heap) -> None:
    circle: Any = heap.share(["x" * 10_000])
    circle.append(circle)
    del circle
    contents = heap.statistics().contents
    assert contents is not None
    assert contents.lost_bytes > 10_000
    collected = heap.gc()
    assert collected == share.Collected(contents.lost_bytes, 0)
    contents = heap.statistics().contents
    assert contents is not None
    assert contents.lost_bytes == 0


def test_the_heap_itself_is_described(heap: share.Heap) -> None:
    told = heap.statistics(contents=False)
    assert told.contents is None
    assert 0 <= heap.max_size - told.max_bytes < 1 << 17
    assert told.used_bytes > 0
    assert abs(told.created - time.time()) < 600
    assert (told.deaths, told.collections) == (0, 0)
    heap.gc()
    assert heap.statistics(contents=False).collections == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.deaths = 1  # type: ignore[misc]


def test_other_processes_are_told_and_what_they_hold(heap: share.Heap) -> None:
    assert heap.statistics().processes == ()
    (waits, tells), (goes_on, let_go) = os.pipe(), os.pipe()
    heap.root["guarded"] = []
    child = os.fork()
    if child == 0:
        with heap.root["guarded"]:
            os.write(tells, b"!")
            os.read(goes_on, 1)
        os._exit(0)
    try:
        os.read(waits, 1)
        told = heap.statistics()
        [process] = told.processes
        assert (process.pid, process.alive, process.threads) == (child, True, 1)
        [lock] = told.locks
        assert (lock.pid, lock.alive) == (child, True)
        assert lock.guards.startswith("list at ")
        assert heap.statistics(contents=False).locks == (), "to find it is to look at all objects"
    finally:
        os.write(let_go, b"!")
        os.waitpid(child, 0)
        for end in (waits, tells, goes_on, let_go):
            os.close(end)


def test_a_closed_heap_tells_nothing(heap: share.Heap) -> None:
    heap.close()
    with pytest.raises(ValueError, match="the heap is closed"):
        heap.statistics()


def test_a_heap_is_opened_where_another_process_has_it(heap: share.Heap) -> None:
    heap.root["a"] = 1
    _, (_, place) = heap.__reduce__()
    again = share.Heap.at(str(place))
    assert again == heap
    assert again.root["a"] == 1
    with pytest.raises(FileNotFoundError):
        share.Heap.at("/proc/self/fd/999999")


def test_import_star_takes_no_builtin_away() -> None:
    names: dict[str, object] = {}
    exec("from ungil.share import *", names)
    del names["__builtins__"]
    assert names.keys() & vars(builtins).keys() == set()
    assert names.keys() == {*share.__all__}
    # They are public all the same, and imported once they are asked for.
    assert all(isinstance(getattr(share, name), type) for name in ("dict", "list", "set"))
