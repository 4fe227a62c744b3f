"""What threads do to the same object, or the same iterator, at the same moment.

Where there is a GIL most of this is impossible. Without one all but one of these have failed, and
that one, about objects that come into the place of others, might have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from meanwhile import Meanwhile

from ungil import share

THREADS = 4
TIMES = 500
ITEMS = 100_000
NUMBERS = range(1_000)
FORKS = 60
PATIENCE_S = 60


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


def filling(changing: Any) -> Callable[[], None]:
    """What another thread does to a set, list or dict: it fills it from 0 on, and clears it."""
    put = {set: "add", list: "append", dict: "setdefault"}[type(changing)]

    def fill() -> None:
        for number in NUMBERS:
            getattr(changing, put)(number)
        changing.clear()

    return fill


def test_threads_that_share_an_iterator_get_each_item_once(heap: share.Heap) -> None:
    items: Any = heap.share(list(range(ITEMS)))
    iterator = iter(items)
    taken: list[list[int]] = [[] for _ in range(THREADS)]
    begin = threading.Barrier(THREADS)
    failures: list[BaseException] = []

    def take(number: int) -> None:
        begin.wait()
        try:
            for item in iterator:
                taken[number].append(item)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(item for items in taken for item in items) == list(range(ITEMS))


@pytest.mark.parametrize("kind", [set, list, dict])
def test_a_container_is_shared_as_it_is_at_one_moment(heap: share.Heap, kind: type) -> None:
    """Although another thread changes it: it has numbers from 0 on without a gap."""
    changing: Any = kind()
    shared: Any = heap.share

    with Meanwhile(filling(changing)):
        for _ in range(TIMES // 2):
            seen: list[int] = list(shared(changing))
            assert sorted(seen) == list(range(len(seen)))


def test_a_set_is_updated_with_what_another_set_has_at_one_moment(heap: share.Heap) -> None:
    changing: set[int] = set()
    shared: Any = heap.share(set[int]())

    with Meanwhile(filling(changing)):
        for _ in range(TIMES // 4):
            shared.update(changing)
            shared.intersection_update(changing)
            shared.difference_update(changing)
            shared.symmetric_difference_update(changing)


def test_what_a_set_has_at_one_moment_is_put_into_a_queue(heap: share.Heap) -> None:
    changing: set[int] = set()
    queue: Any = heap.share(share.Queue[int]())

    with Meanwhile(filling(changing)):
        for _ in range(TIMES // 4):
            count = queue.put_many(changing)
            seen: list[int] = queue.get_many(count) if count else []
            assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("kind", [set, list, dict])
def test_a_container_is_frozen_as_it_is_at_one_moment(kind: type) -> None:
    changing: Any = kind()
    freeze: Any = share.freeze

    with Meanwhile(filling(changing)):
        for _ in range(TIMES // 2):
            seen: list[int] = list(freeze(changing))
            assert sorted(seen) == list(range(len(seen)))


def test_what_is_read_is_never_an_object_that_has_come_into_its_place(heap: share.Heap) -> None:
    """Objects of two keys are replaced all the time.

    So each is often made where one of the other key has been.
    """
    table: Any = heap.share({"left": {"is": "left"}, "right": {"is": "right"}})
    items: Any = heap.share([["left"], ["right"]])

    def replace() -> None:
        for key in ("left", "right"):
            table[key] = {"is": key}
        for index, key in enumerate(("left", "right")):
            items[index] = [key]

    def read() -> None:
        for key in ("left", "right"):
            assert table[key]["is"] == key
            assert table.get(key)["is"] == key
        for key, value in table.items():
            assert value["is"] == key
        assert items[0][0] == "left"
        assert [item[0] for item in items] == ["left", "right"]
        assert [item[0] for item in items[:]] == ["left", "right"]

    with Meanwhile(replace, read, read):
        for _ in range(TIMES):
            read()


# Python warns of it: what another thread has locked stays so in the child.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_threads_use_the_heap_can_use_it(heap: share.Heap) -> None:
    outer: Any = heap.share({"a": {"b": [1]}, "count": 0})

    def use() -> None:
        assert outer["a"]["b"][0] == 1
        outer.incr("count")

    with Meanwhile(*[use] * THREADS):
        for _ in range(FORKS):
            pid = os.fork()
            if pid == 0:
                # One that waits for ever is ended.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(PATIENCE_S)
                ended = 1
                try:
                    use()
                    ended = 0
                finally:
                    os._exit(ended)
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0
