"""A plausible mistake with `ungil.share` gets a sentence that says what to write instead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest
import share_pool_tasks as tasks

from ungil import share

HEAP = share.Heap()
# What each says; that a type checker would have said it, too, helps nobody here.
share_any: Any = share


def shared(given: object) -> Any:
    return HEAP.share(given)


class Inherits(list[int]):
    """A class that cannot be a struct."""


MISTAKES: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "wait() takes a list of queues, not share.Queue: write share.wait([queue])": (
        lambda: share_any.wait(shared(share_any.Queue())),
        TypeError,
    ),
    "wait() takes a list of queues, not int": (lambda: share_any.wait(3), TypeError),
    "queues[1] is of type queue.Queue: wait() takes a share.Queue or a share.PriorityQueue, and"
    " share.wait_for_change() a container": (
        lambda: share_any.wait([shared(share_any.Queue()), queue.Queue()]),
        TypeError,
    ),
    "queues[0] is of type share.dict: wait() takes a share.Queue or a share.PriorityQueue, and"
    " share.wait_for_change() a container": (lambda: share_any.wait([HEAP.root]), TypeError),
    "share.incr() changes a field of an instance of a @share.struct class, not of share.dict: call"
    " incr() of the object itself": (lambda: share.incr(HEAP.root, "key"), TypeError),
    "share.cas() changes a field of an instance of a @share.struct class, not of int": (
        lambda: share.cas(3, "field", 0, 1),
        TypeError,
    ),
    "lock is of type _thread.lock: a share.Condition takes a share.Lock or a share.RLock": (
        lambda: share_any.Condition(threading.Lock()),
        TypeError,
    ),
    "@share.struct is for a class, not for 'Account'": (
        lambda: share_any.struct("Account"),
        TypeError,
    ),
    "Inherits cannot be a struct, because it inherits from list: declare a field of that type"
    " instead": (lambda: share.struct(Inherits), TypeError),
    "max_workers='two' is not a whole number": (lambda: share_any.Pool("two"), TypeError),
    "retries=0.5 is not a whole number": (lambda: share_any.Pool(1, retries=0.5), TypeError),
    "most=-1 is less than 0": (lambda: shared(share_any.Queue()).get_many(-1), ValueError),
    "length=-1 is less than 0": (lambda: shared(share.array(3)).resize(-1), ValueError),
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_a_mistake_says_what_to_write_instead(sentence: str) -> None:
    mistake, kind = MISTAKES[sentence]
    with pytest.raises(kind) as caught:
        mistake()
    assert str(caught.value) == sentence


def test_a_number_in_the_place_of_a_function_calls_none() -> None:
    with share.Pool(1) as pool:
        # The workers know it by the number 1 from now on.
        assert [*pool.map(tasks.square, [2])] == [4]
        wrong: Any = 1
        with pytest.raises(TypeError, match=r"^fn=1 cannot be called$"):
            pool.submit(wrong, 2)
        with pytest.raises(TypeError, match=r"^fn=1 cannot be called$"):
            pool.map(wrong, [2])
        with pytest.raises(TypeError, match=r"^chunksize='2' is not a whole number$"):
            pool.map(tasks.square, [2], chunksize=wrong and "2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wanted", [share.Lock(), share.RLock(), share.Condition(), share.Semaphore()]
)
def test_whether_to_block_is_said_by_any_truth_as_with_threading(wanted: object) -> None:
    lock = shared(wanted)
    assert lock.acquire(1)
    lock.release()
    assert lock.acquire(0)
    lock.release()


def test_whether_to_block_is_said_by_any_truth_as_with_queue() -> None:
    items = shared(share_any.Queue(1))
    items.put("first", 1)
    with pytest.raises(queue.Full):
        items.put("second", 0)
    assert items.get(1) == "first"
    with pytest.raises(queue.Empty):
        items.get(0)
    with pytest.raises(queue.Empty):
        items.lease(0)
