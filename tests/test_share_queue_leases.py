"""Items of shared queues that are out on a lease."""

from __future__ import annotations

import os
import queue
import signal
import threading
from typing import Any

import pytest
from forked import ended, in_child
from shared_queues import killed, made

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


def test_leases_of_the_dead_are_not_taken_back_in_a_transaction(heap: share.Heap) -> None:
    many, one = made(heap), made(heap)
    # The next lease is one of those that look for the dead.
    many.put_many(range(64))
    for number in range(62):
        with many.lease() as item:
            assert item == number
    one.put("only")

    def lease() -> None:
        leases = [many.lease(), one.lease()]
        os.kill(os.getpid(), signal.SIGKILL)
        del leases

    os.waitpid(in_child(lease), 0)
    with heap.atomic():
        heap.root["changed"] = True
        for use in (many.lease, many.get, lambda: share.wait([one], timeout=0)):
            with pytest.raises(RuntimeError, match="transaction"):
                use()
    assert (many.leased, one.leased) == (1, 1)
    assert {many.get(), many.get()} == {62, 63}
    assert one.get() == "only"
    assert (many.leased, one.leased, many.qsize(), one.qsize()) == (0, 0, 0, 0)


def test_a_lease_is_acknowledged_put_back_or_thrown_away(heap: share.Heap) -> None:
    q = made(heap)
    q.put_many(["a", "b"])
    with q.lease() as item:
        assert item == "a"
        assert (q.leased, q.qsize(), q.unfinished) == (1, 1, 2)
    assert (q.leased, q.unfinished) == (0, 1)
    with pytest.raises(ZeroDivisionError), q.lease() as item:
        raise ZeroDivisionError
    lease = q.lease()
    assert lease.item == "b"
    del lease
    lease = q.lease()
    lease.ack()
    assert lease.over
    with pytest.raises(RuntimeError, match="already ended"):
        lease.put_back()
    assert q.join(timeout=0)
    q.put("c")
    lease = q.lease()

    def use_the_parents() -> None:
        with pytest.raises(RuntimeError, match="belongs to the parent process"):
            lease.ack()

    assert ended(in_child(use_the_parents)) == 0
    lease.put_back()
    assert q.get() == "c"


def test_a_lease_that_cannot_end_in_a_transaction_has_not_ended(heap: share.Heap) -> None:
    q = made(heap)
    q.put("a")
    lease = q.lease()
    with heap.atomic():
        for end in (lease.ack, lease.put_back):
            with pytest.raises(RuntimeError, match="transaction"):
                end()
    assert not lease.over
    lease.ack()
    assert (lease.over, q.leased) == (True, 0)


def test_a_lease_that_is_given_up_in_a_transaction_is_put_back_after_it(heap: share.Heap) -> None:
    q = made(heap)
    q.put("a")
    lease = q.lease()
    with heap.atomic():
        del lease
    assert q.leased == 0
    assert q.get() == "a"


@pytest.mark.parametrize("kind", [share.Queue, share.PriorityQueue])
def test_what_a_killed_process_had_leased_is_the_next_item(
    heap: share.Heap, kind: type[share.Queue[Any]]
) -> None:
    q = heap.share(kind())
    leased = heap.share(share.Semaphore(0))
    q.put_many([1, 2])

    def lease() -> None:
        leases = [q.lease(), q.lease()]
        leased.release()
        signal.pause()
        del leases

    child = in_child(lease)
    leased.acquire()
    waiting = [threading.Thread(target=lambda: got.append(q.get())) for _ in range(2)]
    got: list[int] = []
    for thread in waiting:
        thread.start()
    killed(child)
    for thread in waiting:
        thread.join()
    assert sorted(got) == [1, 2]
    assert q.leased == 0


def test_a_closed_queue_waits_for_leases_of_others(heap: share.Heap) -> None:
    q = made(heap)
    leased = heap.share(share.Semaphore(0))
    q.put("job")

    def lease() -> None:
        lease = q.lease()
        leased.release()
        signal.pause()
        lease.ack()

    child = in_child(lease)
    leased.acquire()
    q.close()
    with pytest.raises(queue.Empty):
        q.get(timeout=0.01)
    killed(child)
    assert q.get() == "job"
    with pytest.raises(share.ShutDown):
        q.get()
