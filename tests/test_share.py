"""Shared dicts and lists, seen from Python."""

import os
import signal
from typing import Any

import pytest
from forked import ended, in_child

from ungil import share

SIZE = 1 << 26


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=SIZE)


VALUES: list[object] = [
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(10**40), 0.0, -2.5, 1 + 2j),
    *("", "short", "longer than a cell has room for", "h\xe9llo", "\udc80", "a\0b"),
    *(b"", b"\0\xff", b"longer than a cell has room for"),
    *((), (1, ("two", (3.0,))), frozenset(), frozenset({1.5, 2})),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_cannot_change_comes_back_as_it_went_in(heap: share.Heap, value: object) -> None:
    heap.root["value"] = value
    found = heap.root["value"]
    assert found == value
    assert type(found) is type(value)


def test_numbers_that_are_equal_are_the_same_key(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    root[1] = "one"
    assert root[1.0] == root[True] == "one"
    assert (0, 1.0) not in heap.root
    root[(0, 1)] = "pair"
    assert root[(False, 1.0)] == "pair"


def test_nested_containers_change_in_place(heap: share.Heap) -> None:
    heap.root["a"] = {"b": [1, {"c": 2}]}
    a: share.dict[Any, Any] = heap.root["a"]
    assert isinstance(a, share.dict)
    assert heap.root["a"] is a
    b: share.list[Any] = a["b"]
    assert isinstance(b, share.list)
    b[0] = "first"
    b.append((a, 3))
    assert b[:1] == ["first"]
    last = b[-1]
    assert isinstance(last, tuple)
    assert last[0] is a


def test_an_object_that_contains_itself_can_be_shared(heap: share.Heap) -> None:
    items: list[object] = [1]
    items.append(items)
    shared: share.list[Any] = heap.share(items)
    assert isinstance(shared, share.list)
    assert shared[1] is shared


def test_what_cannot_be_shared_is_named_with_its_place(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    with pytest.raises(TypeError, match=r"^\['x'\]\[3\] cannot be shared: it is of type object; "):
        heap.root["d"] = {"x": [0, 1, 2, object()]}
    assert "d" not in heap.root
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        root[[]] = 1


def test_a_missing_key_and_a_wrong_index_are_what_they_are_for_builtins(heap: share.Heap) -> None:
    with pytest.raises(KeyError, match="'missing'"):
        heap.root["missing"]
    with pytest.raises(KeyError, match="'missing'"):
        del heap.root["missing"]
    shared: share.list[Any] = heap.share([1])
    assert isinstance(shared, share.list)
    wrong: Any = "a"
    with pytest.raises(IndexError, match="list index out of range"):
        shared[1]
    with pytest.raises(IndexError, match="list assignment index out of range"):
        shared[-2] = 0
    with pytest.raises(TypeError, match="list indices must be integers or slices, not str"):
        shared[wrong]


def test_parent_and_child_lose_no_increment(heap: share.Heap) -> None:
    root = heap.root

    def count() -> None:
        for _ in range(20_000):
            root.incr("count")

    child = os.fork()
    count_then_exit = child == 0
    count()
    if count_then_exit:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert root["count"] == 40_000


def test_a_child_that_is_killed_leaves_everything_usable(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    ready, tell = os.pipe()

    def fill() -> None:
        number = 0
        while True:
            root[number % 100] = [number, str(number) * 10]
            number += 1
            if number == 1_000:
                os.write(tell, b"!")

    child = os.fork()
    if child == 0:
        fill()
    assert os.read(ready, 1) == b"!"
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    for key in range(100):
        value: share.list[Any] = root[key]
        assert isinstance(value, share.list)
        number = value[0]
        assert isinstance(number, int)
        assert number % 100 == key
        assert value[1] == str(number) * 10
    root.clear()
    assert heap.gc() is not None
    assert len(root) == 0


def test_what_a_child_makes_outlives_it(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    root["from"] = {}

    def make() -> None:
        target: share.dict[Any, Any] = root["from"]
        assert isinstance(target, share.dict)
        target["child"] = [1, 2]

    assert ended(in_child(make)) == 0
    heap.gc()
    target: share.dict[Any, Any] = root["from"]
    assert isinstance(target, share.dict)
    made: share.list[Any] = target["child"]
    assert isinstance(made, share.list)
    assert made[:] == [1, 2]


def test_a_full_heap_raises_memory_error_and_stays_usable() -> None:
    heap = share.Heap(max_size=1 << 20)

    def fill() -> None:
        root: share.dict[Any, Any] = heap.root
        for number in range(1_000):
            root[number] = b"x" * 10_000

    with pytest.raises(MemoryError, match="max_size"):
        fill()
    kept = len(heap.root)
    assert kept > 10
    heap.root.clear()
    heap.root["again"] = b"x" * 10_000
    assert len(heap.root) == 1


def test_an_impossible_size_is_refused() -> None:
    with pytest.raises(ValueError, match="not 1"):
        share.Heap(max_size=1)
