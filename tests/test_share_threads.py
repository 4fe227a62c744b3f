"""Threads of one process use the same shared objects at the same time.

Without a GIL they do so within every operation; with one, wherever that lets others run.
"""

from __future__ import annotations

import collections
import gc
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from ungil import share
from ungil.fanout import fanout

THREADS = 8
TIMES = 300


@pytest.fixture
def heap() -> Generator[share.Heap]:
    heap = share.Heap(max_size=1 << 26)
    yield heap
    assert heap.gc() is not None


def at_once(work: Callable[[int], None]) -> None:
    """Call `work` in so many threads at the same time, and raise what one of them raises."""
    begin = threading.Barrier(THREADS)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            begin.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


@share.struct
class Counter:
    """Fields that all threads change."""

    count: int
    name: str


def test_no_change_is_lost(heap: share.Heap) -> None:
    counts: Any = heap.share(dict[str, Any](all=0, mine={}))
    items: Any = heap.share(list[int]())
    seen: Any = heap.share(set[int]())
    counter = heap.share(Counter(0, ""))

    def work(number: int) -> None:
        for time in range(TIMES):
            counts.incr("all")
            counts["mine"][number] = time
            items.append(number)
            seen.add(number * TIMES + time)
            share.incr(counter, "count")

    at_once(work)
    assert counts["all"] == THREADS * TIMES
    assert dict(counts["mine"]) == dict.fromkeys(range(THREADS), TIMES - 1)
    assert sorted(items) == sorted(list(range(THREADS)) * TIMES)
    assert len(seen) == THREADS * TIMES
    assert counter.count == THREADS * TIMES


def test_each_item_is_taken_once(heap: share.Heap) -> None:
    waiting: Any = heap.share(collections.deque(range(THREADS * TIMES)))
    taken: list[list[int]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        while True:
            try:
                taken[number].append(waiting.popleft())
            except IndexError:
                return

    at_once(work)
    assert sorted(item for items in taken for item in items) == list(range(THREADS * TIMES))


def test_an_object_has_one_proxy_whichever_threads_ask_for_it(heap: share.Heap) -> None:
    """Proxies are made, found and let go of by all threads at once."""
    outer: Any = heap.share({"a": {"b": [1]}})

    def work(_: int) -> None:
        for _ in range(TIMES):
            inner = outer["a"]
            assert outer["a"] is inner
            assert inner["b"] == [1]
            del inner

    at_once(work)
    gc.collect()
    assert outer["a"]["b"][0] == 1


def test_threads_that_let_go_of_an_object_find_it_again(heap: share.Heap) -> None:
    heap.root["counts"] = {"all": 0}
    times = 20 * TIMES

    def count(_: int) -> None:
        for _ in range(times):
            # The proxy of the inner dict ends here, just as other threads ask for it.
            heap.root["counts"].incr("all")

    at_once(count)
    assert heap.root["counts"]["all"] == THREADS * times


def test_what_is_replaced_while_others_read_it_stays_whole_for_them(heap: share.Heap) -> None:
    table: Any = heap.share({"now": {"left": 0, "right": 0}})

    def work(number: int) -> None:
        for time in range(TIMES):
            if number % 2:
                value = number * TIMES + time
                table["now"] = {"left": value, "right": value}
            else:
                now = dict(table["now"])
                assert now["left"] == now["right"]

    at_once(work)
    gc.collect()


def test_transactions_of_threads_do_not_mix(heap: share.Heap) -> None:
    accounts: Any = heap.share(dict.fromkeys(range(4), 100))

    def work(number: int) -> None:
        for time in range(TIMES // 10):
            giver, taker = number % 4, (number + time + 1) % 4
            with heap.atomic():
                accounts[giver] -= 1
                accounts[taker] += 1

    at_once(work)
    assert sum(accounts.values()) == 400


def test_a_lock_is_one_threads_at_a_time(heap: share.Heap) -> None:
    heap.root["lock"] = share.Lock()
    lock, inside = heap.root["lock"], [0]

    def work(_: int) -> None:
        for _ in range(TIMES):
            with lock:
                inside[0] += 1

    at_once(work)
    assert inside == [THREADS * TIMES]


def test_fan_outs_of_several_threads_each_have_their_own_results() -> None:
    def work(number: int) -> None:
        outcomes = fanout(lambda item: item + number, range(50), mode="threads", limit=4)
        values = [it.value for it in outcomes]
        assert len(values) == 50
        assert set(values) == set(range(number, number + 50))

    at_once(work)
