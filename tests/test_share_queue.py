"""Shared queues, seen from Python: like those of `queue`, and what is ours."""

from __future__ import annotations

import os
import pickle
import queue
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from forked import ended, in_child
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_queues import killed, made

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


def test_items_come_out_as_they_were_put_in(heap: share.Heap) -> None:
    q = made(heap)
    items: list[Any] = [
        1,
        -(10**40),
        2.5,
        None,
        True,
        "a",
        "long" * 50,
        b"x" * 3000,
        (1, ("a", b"b")),
    ]
    for item in items:
        q.put(item)
    assert q.qsize() == len(items)
    assert [q.get() for _ in items] == items
    assert q.empty()


def test_containers_and_proxies_are_shared_by_a_queue(heap: share.Heap) -> None:
    q = made(heap)
    inner: share.list[int] = heap.share([1])
    q.put({"a": inner, "b": [2]})
    q.put((inner, "x"))
    got: share.dict[str, Any] = q.get()
    assert isinstance(got, share.dict)
    assert got["a"] is inner
    got["b"].append(3)
    assert got == {"a": [1], "b": [2, 3]}
    assert q.get()[0] is inner
    del got
    freed = heap.gc()
    assert freed is not None


def test_a_queue_is_found_in_its_heap_by_other_processes(heap: share.Heap) -> None:
    heap.root["q"] = share.Queue()
    q: share.Queue[Any] = heap.root["q"]
    assert q is heap.root["q"]
    child = in_child(lambda: q.put(os.getpid()))
    assert q.get(timeout=60) == child
    assert ended(child) == 0
    assert pickle.loads(pickle.dumps(q)) is q


def test_time_outs_raise_the_exceptions_of_the_standard_library(heap: share.Heap) -> None:
    q = made(heap, 1)
    with pytest.raises(queue.Empty, match=r"within 0\.01 s"):
        q.get(timeout=0.01)
    with pytest.raises(queue.Empty):
        q.get_nowait()
    q.put(1)
    assert q.full()
    with pytest.raises(queue.Full, match=r"1 items \(its maxsize\).*within 0\.01 s"):
        q.put(2, timeout=0.01)
    with pytest.raises(queue.Full):
        q.put_nowait("a long string, which would need memory")
    with pytest.raises(ValueError, match="non-negative"):
        q.get(timeout=-1)
    assert q.get() == 1


def test_what_cannot_be_shared_is_refused_and_changes_nothing(heap: share.Heap) -> None:
    q = made(heap)
    with pytest.raises(TypeError, match=r"\['x'\]\[0\]"):
        q.put({"x": [object()]})
    assert q.empty()
    with pytest.raises(ValueError, match="at most"):
        share.Queue(1 << 40)
    with pytest.raises(RuntimeError, match="not in a heap yet"):
        share.Queue[int]().get()


def test_a_queue_is_refused_in_a_transaction_but_can_be_made_in_one(heap: share.Heap) -> None:
    q = made(heap)
    with heap.atomic():
        with pytest.raises(RuntimeError, match="transaction"):
            q.put(1)
        with pytest.raises(RuntimeError, match="transaction"):
            q.get()
        heap.root["q"] = share.Queue()
    heap.root["q"].put(1)
    assert heap.root["q"].get() == 1
    assert q.empty()


def test_a_closed_queue_is_drained_and_then_says_so(heap: share.Heap) -> None:
    q = made(heap)
    q.put(1)
    q.put_many([2, 3])
    q.close()
    assert q.closed
    with pytest.raises(share.ShutDown):
        q.put(4)
    with pytest.raises(share.ShutDown):
        q.put_many([4])
    assert [q.get(), *q.get_many(10)] == [1, 2, 3]
    with pytest.raises(share.ShutDown):
        q.get()
    with pytest.raises(share.ShutDown):
        q.get_many(3)
    assert hasattr(queue, "ShutDown") == (share.ShutDown is getattr(queue, "ShutDown", None))


def test_closing_wakes_all_who_wait(heap: share.Heap) -> None:
    empty, full = made(heap), made(heap, 1)
    full.put(0)
    told: list[str] = []

    def wait(call: Callable[[], object]) -> None:
        try:
            call()
        except share.ShutDown as error:
            told.append(str(error))

    threads = [
        threading.Thread(target=wait, args=(call,))
        for call in (empty.get, empty.get, lambda: full.put(1), lambda: full.put_many([1, 2]))
    ]
    for thread in threads:
        thread.start()
    empty.close()
    full.shutdown(immediate=True)
    for thread in threads:
        thread.join()
    assert len(told) == 4
    assert full.unfinished == 0


def test_join_waits_until_everything_is_done(heap: share.Heap) -> None:
    q = made(heap)
    assert q.join()
    q.put_many(range(3))
    assert not q.join(timeout=0.01)

    def work() -> None:
        for _ in range(3):
            q.get()
            q.task_done()

    child = in_child(work)
    assert q.join(timeout=60)
    assert ended(child) == 0
    with pytest.raises(ValueError, match="too many times"):
        q.task_done()


def test_several_items_at_a_time(heap: share.Heap) -> None:
    q = made(heap, 500)
    assert q.put_many(range(1000), timeout=0) == 500
    assert q.get_many(3) == [0, 1, 2]
    assert q.put_many(iter(["x" * 40, "y" * 40])) == 2
    assert len(q.get_many(1000)) == 499
    with pytest.raises(queue.Empty):
        q.get_many(1, timeout=0)
    assert q.put_many([{"a": 1}, 2, ("b", [3])]) == 3
    assert q.get_many(5) == [{"a": 1}, 2, ("b", [3])]
    assert q.get_many(0) == []


def test_what_cannot_be_made_here_stays_in_the_queue(heap: share.Heap) -> None:
    q = made(heap)
    q.put(share.Pickled(1))
    child = in_child(lambda: q.put(local_struct()))
    assert ended(child) == 0
    assert q.get().load() == 1
    for take in (q.get, lambda: q.get_many(1), q.lease):
        with pytest.raises((TypeError, ImportError, RuntimeError)):
            take()
        assert q.qsize() == 1


def in_small_thread(call: Callable[[], object]) -> object:
    """What a thread with a small stack gets, or the exception."""
    got: list[object] = []

    def run() -> None:
        try:
            got.append(call())
        except Exception as error:
            got.append(error)

    before = threading.stack_size(96 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return got[0]


def test_what_is_too_deep_for_a_thread_stays_in_the_queue(heap: share.Heap) -> None:
    q = made(heap)
    deep: object = ()
    for _ in range(120):
        deep = (deep,)
    q.put(deep)
    assert isinstance(in_small_thread(q.get), RecursionError)
    assert isinstance(in_small_thread(lambda: q.get_many(2)), RecursionError)
    assert q.get() == deep
    q.put_many([1, "x" * 40, deep, 2])
    assert in_small_thread(lambda: q.get_many(4)) == [1, "x" * 40]
    assert q.get_many(4) == [deep, 2]


def test_many_items_need_no_more_room_than_the_queue_has() -> None:
    small = share.Heap(max_size=1 << 23)
    q = made(small, 2)
    assert q.put_many([bytes(1 << 20)] * 100, timeout=0) == 2
    assert q.put_many([bytes(1 << 20)] * 100, timeout=0) == 0
    assert len(q.get_many(2)) == 2


def local_struct() -> object:
    """An instance of a class that no other process has."""

    @share.struct
    class Local:
        x: int

    return Local(1)


@settings(max_examples=100, deadline=None)
@given(
    maxsize=st.integers(0, 70),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.one_of(st.integers(), st.text(max_size=40))),
            st.tuples(st.just("get"), st.none()),
            st.tuples(st.just("put_many"), st.lists(st.integers(), max_size=90)),
            st.tuples(st.just("get_many"), st.integers(1, 90)),
            st.tuples(st.just("lease and put back"), st.none()),
            st.tuples(st.just("lease and ack"), st.none()),
        ),
        max_size=40,
    ),
)
def test_a_queue_does_what_that_of_the_standard_library_does(
    maxsize: int, steps: list[tuple[str, Any]]
) -> None:
    plain: queue.Queue[Any] = queue.Queue(maxsize)
    shared = made(share.Heap(max_size=1 << 24), maxsize)
    for step, argument in steps:
        match step:
            case "put":
                assert told(lambda a=argument: plain.put_nowait(a)) == told(
                    lambda a=argument: shared.put_nowait(a)
                )
            case "get":
                assert told(plain.get_nowait) == told(shared.get_nowait)
            case "put_many":
                room = maxsize - plain.qsize() if maxsize else len(argument)
                assert shared.put_many(argument, timeout=0) == min(room, len(argument))
                for item in argument[:room]:
                    plain.put_nowait(item)
            case "get_many":
                wanted = [plain.get_nowait() for _ in range(min(argument, plain.qsize()))]
                got = told(lambda a=argument: shared.get_many(a, timeout=0))
                assert got == (wanted or queue.Empty)
            case _:
                if plain.empty():
                    continue
                lease = shared.lease(block=False)
                if step == "lease and ack":
                    assert lease.item == plain.get_nowait()
                    lease.ack()
                else:
                    lease.put_back()
        assert shared.qsize() == plain.qsize()
        assert (shared.empty(), shared.full()) == (plain.empty(), plain.full())


def told(call: Callable[[], object]) -> object:
    try:
        return call()
    except (queue.Empty, queue.Full) as error:
        return type(error)


def test_several_queues_are_waited_for(heap: share.Heap) -> None:
    first, second, third = made(heap), made(heap), made(heap)
    assert share.wait([first, second], timeout=0.01) == []
    assert share.wait([]) == []
    child = in_child(lambda: second.put(1))
    assert share.wait([first, second, third], timeout=60) == [second]
    assert ended(child) == 0
    third.close()
    assert share.wait([first, second, third]) == [second, third]
    with pytest.raises(ValueError, match="in one heap"):
        share.wait([first, made(share.Heap(max_size=1 << 20))])


def test_nobody_loses_an_item_where_processes_are_killed(heap: share.Heap) -> None:
    """Producers and consumers die all the time; what the living did is accounted for."""
    jobs, done = made(heap, 50), made(heap)
    produced, consumers, lifetimes = 600, 3, 8

    def produce(name: int) -> None:
        for number in range(produced):
            jobs.put((name, number) if number % 2 else f"{name} {number}, which is longer")

    def consume() -> None:
        while True:
            lease = jobs.lease()
            done.put(lease.item)
            lease.ack()

    producers = [in_child(lambda name=name: produce(name)) for name in range(2)]
    workers = [in_child(consume) for _ in range(consumers)]
    seen: list[Any] = []
    for _ in range(lifetimes):
        # So that they are at work.
        seen += [done.get(timeout=100) for _ in range(20)]
        killed(workers.pop(0))
        workers.append(in_child(consume))
    for child in producers:
        assert ended(child) == 0
    assert jobs.join(timeout=100)
    for child in workers:
        killed(child)
    counts = Counter(seen + done.get_many(10 * produced))
    assert len(counts) == 2 * produced
    # One that dies between the two steps has done it, and another one does it again.
    assert counts.total() <= 2 * produced + lifetimes + consumers


@pytest.mark.parametrize("kind", [share.Queue, share.PriorityQueue])
def test_how_long_a_queue_looks_is_the_same_in_all_processes(
    heap: share.Heap, kind: type[share.Queue[Any]]
) -> None:
    wanted = kind(3, spin=0.01)
    assert repr(wanted) == f"{kind.__name__}(3, spin=0.01)"
    there, back = heap.share(wanted), heap.share(kind(spin=0.0005))

    def child() -> None:
        assert (there.spin, back.spin, there.maxsize) == (0.01, 0.0005, 3)
        for number in range(100):
            assert there.get() == number
            back.put(number)

    answering = in_child(child)
    for number in range(100):
        there.put(number)
        assert back.get() == number
    assert ended(answering) == 0
    assert made(heap).spin == 0.0


def test_other_threads_run_while_one_looks(heap: share.Heap) -> None:
    q = heap.share(share.Queue[int](spin=0.01))
    got: list[int] = []
    taking = threading.Thread(target=lambda: got.extend(q.get() for _ in range(100)))
    taking.start()
    for number in range(100):
        q.put(number)
    taking.join()
    assert got == list(range(100))


def test_a_queue_that_looks_keeps_to_a_timeout(heap: share.Heap) -> None:
    q = heap.share(share.Queue[int](spin=0.01))
    with pytest.raises(queue.Empty):
        q.get(timeout=0.001)
    with pytest.raises(queue.Empty):
        q.get_nowait()


@pytest.mark.parametrize("spin", [-1e-9, float("nan"), 0.0101, float("inf"), -1])
def test_a_queue_that_would_look_for_another_time_is_refused(spin: float) -> None:
    for kind in (share.Queue, share.PriorityQueue):
        with pytest.raises(ValueError, match=r"seconds .* from 0 to 0\.01, not "):
            kind(spin=spin)
