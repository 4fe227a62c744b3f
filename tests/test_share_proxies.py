"""Proxies of shared objects: one at a time, and nothing left of those that are gone."""

import gc
import os
import sysconfig
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from ungil import share

SIZE = 1 << 24
PAYLOAD = b"payload" * 20_000


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=SIZE)


def test_an_object_has_one_proxy_as_long_as_somebody_has_it(heap: share.Heap) -> None:
    heap.root["a"] = {"b": {"c": 1}, "d": [[2]]}
    a = heap.root["a"]
    for _ in range(3):
        b, row = a["b"], a["d"][0]
        assert heap.root["a"] is a
        assert a["b"] is b
        assert a.get("b") is b
        assert next(iter(a.values())) is b
        assert a["d"][0] is row
        del b, row
    assert heap.root["a"]["b"]["c"] == 1


def test_a_proxy_is_of_the_object_it_was_made_for_whatever_was_in_its_memory(
    heap: share.Heap,
) -> None:
    heap.root["dicts"] = [{"number": number} for number in range(200)]
    heap.root["lists"] = [[number] for number in range(200)]
    dicts, lists = heap.root["dicts"], heap.root["lists"]
    for number in range(200):
        assert dicts[number]["number"] == number
        assert lists[number][0] == number
    # More than are kept for others, in use at once.
    for _ in range(3):
        kept = [dicts[number] for number in range(200)], [lists[number] for number in range(200)]
        assert [one["number"] for one in kept[0]] == [one[0] for one in kept[1]]
        assert {type(one) for one in kept[0]} == {share.dict}
        assert all(gc.is_tracked(one) for one in kept[0])
        del kept


def test_a_weak_reference_never_leads_to_another_object(heap: share.Heap) -> None:
    heap.root["first"], heap.root["second"] = {"number": 1}, {"number": 2}
    first = heap.root["first"]
    gone: list[Any] = []
    weak, told = weakref.ref(first), weakref.ref(first, gone.append)
    del first
    assert gone == [told]
    second = heap.root["second"]
    assert second["number"] == 2
    assert weak() is None
    # Without a GIL the table of proxies has one to each.
    own = 1 if sysconfig.get_config_var("Py_GIL_DISABLED") else 0
    assert weakref.getweakrefcount(second) == own


def test_who_is_told_that_a_proxy_ends_gets_another_one(heap: share.Heap) -> None:
    heap.root["a"] = {"b": 1}
    seen: list[Any] = []
    first = heap.root["a"]
    weak = weakref.ref(first, lambda _: seen.append(heap.root["a"]))
    del first
    assert weak() is None
    assert seen[0]["b"] == 1
    assert heap.root["a"] is seen[0]
    del seen[0]
    assert heap.root["a"]["b"] == 1


def deleter(heap: share.Heap) -> Callable[[], None]:
    """Forks a process; what is returned has it delete "a", and waits for its end."""
    waits, tells = os.pipe()
    if (child := os.fork()) == 0:
        os.close(tells)
        os.read(waits, 1)
        del heap.root["a"]
        os._exit(0)
    os.close(waits)

    def delete() -> None:
        os.close(tells)
        assert os.waitpid(child, 0)[1] == 0

    return delete


def freed(heap: share.Heap) -> int:
    """How many bytes a collection frees."""
    collected = heap.gc()
    assert collected is not None, "nobody is busy"
    return collected.freed_bytes


def test_an_idle_process_keeps_nothing_that_it_read(heap: share.Heap) -> None:
    heap.root["a"] = {"b": {"c": [1, 2, 3], "payload": PAYLOAD}}
    delete = deleter(heap)
    assert heap.root["a"]["b"]["c"][0] == 1
    delete()
    assert freed(heap) < len(PAYLOAD), "it was freed when it was deleted"


def test_a_proxy_keeps_what_another_process_deletes_and_no_longer(heap: share.Heap) -> None:
    heap.root["a"] = {"b": 1, "payload": PAYLOAD}
    delete = deleter(heap)
    a = heap.root["a"]
    assert a["b"] == 1
    delete()
    assert "a" not in heap.root
    assert freed(heap) < len(PAYLOAD)
    assert a["payload"] == PAYLOAD
    del a
    assert freed(heap) < len(PAYLOAD), "it was freed with its proxy"


def test_a_heap_ends_with_its_last_proxy(heap: share.Heap) -> None:
    heap.root["a"] = {"b": [1]}
    assert heap.root["a"]["b"][0] == 1
    gone = weakref.ref(heap.root)
    assert gone() is None
    other = share.Heap(max_size=SIZE)
    other.root["a"] = {"b": 2}
    b = other.root["a"]
    del other
    assert b["b"] == 2


def test_threads_read_what_others_replace(heap: share.Heap) -> None:
    heap.root["a"] = {"b": {"c": 0}}
    ends = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        while not ends.is_set():
            found = heap.root["a"]["b"]["c"]
            if not 0 <= found <= 2_000:
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(2_000):
        heap.root["a"] = {"b": {"c": number}}
    ends.set()
    for thread in threads:
        thread.join()
    assert not wrong
    heap.gc()
    assert heap.root["a"]["b"]["c"] == 1_999
