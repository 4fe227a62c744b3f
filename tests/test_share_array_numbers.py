"""Numbers of a shared array, one at a time: several processes, blocks, keys, deaths."""

import multiprocessing
import os
import signal
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from forked import ended, in_child
from shared_arrays import shared

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 28)


def test_adds_of_several_processes_are_exact_while_the_array_grows(heap: share.Heap) -> None:
    a = shared(heap, 2, "int32")

    def work() -> None:
        for _ in range(5000):
            a.add(0, 1)
            a.maximum(1, os.getpid() % 1000)

    children = [in_child(work) for _ in range(3)]
    for _ in range(300):
        a.append(1)
    assert [ended(child) for child in children] == [0, 0, 0]
    assert a[0] == 15_000
    assert a[1] == max(child % 1000 for child in children)
    assert len(a) == 302


def test_one_number_is_changed_in_one_step(heap: share.Heap) -> None:
    for code in "bBhHiIlLqQfd":
        a = shared(heap, 3, code)
        assert a.add(1, 100) == 0
        assert a.add(-2, -60) == 100
        assert a.maximum(1, 50) == 40
        assert a.minimum(1, 60) == 50
        assert a.cas(1, 50, 7)
        assert not a.cas(1, 50, 8)
        assert a.tolist() == [0, 7, 0]
        assert type(a[1]) is type(memoryview(array("d" if code in "fd" else "l", [7]))[0])
    flags = shared(heap, 2, bool)
    assert flags.cas(0, False, True)
    assert list(flags) == [True, False]


LINE: Any = np.arange(6) * 10
TABLE: Any = np.arange(12.0).reshape(3, 4)
KEYS: list[tuple[Any, Any]] = [
    (LINE, LINE > 20),
    (LINE, np.zeros(6, bool)),
    (LINE, np.array([1, 2])),
    (LINE, np.array([4])),
    (LINE, np.array([[0, -1], [2, 3]])),
    (LINE, (LINE > 20,)),
    (TABLE, TABLE > 5),
    (TABLE, (np.array([0, 2]), np.array([1, 3]))),
    (TABLE, (np.array([0, 2]), 1)),
    (TABLE, (-1, np.array([3, 0]))),
    (TABLE, (slice(1, None), TABLE[0] > 1)),
]


@pytest.mark.parametrize(("data", "key"), KEYS)
def test_a_key_that_is_an_array_means_what_numpy_makes_of_it(
    heap: share.Heap, data: Any, key: Any
) -> None:
    a, model = shared(heap, data), data.copy()
    assert np.array_equal(a[key], model[key])
    a[key] = 7
    model[key] = 7
    assert np.array_equal(a.numpy(), model)


def test_integers_of_numpy_mean_one_number(heap: share.Heap) -> None:
    line, table = shared(heap, LINE), shared(heap, TABLE)
    for two in (2, np.int16(2), np.array(2)):
        assert type(line[two]) is type(line[two,]) is int
        assert line[two] == line[two,] == 20
        assert type(table[1, two]) is float
        assert table[1, two] == table[two - 1, two] == 6
        table[two, two] = 1.5
        assert table.add((two, two), 1) == 1.5
    assert type(line[True]) is int
    assert line[True] == line[True,] == 10


def test_numbers_that_are_changed_in_a_block_that_fails_are_as_they_were(heap: share.Heap) -> None:
    a = shared(heap, [1, 2, 3], capacity=10)

    def fail() -> None:
        with heap.atomic():
            a[0] = 9
            a.add(1, 5)
            a.resize(1)
            a.append(7)
            assert a == array("l", [9, 7])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert a.tolist() == [1, 2, 3]
    with heap.atomic():
        made = shared(heap, 100)
        made[5] = 1.5
        for view in (memoryview, np.asarray, share.array.numpy):
            with pytest.raises((BufferError, RuntimeError), match="after the block has ended"):
                view(made)
    assert np.asarray(made)[5] == 1.5


def test_a_masked_array_is_refused_as_its_mask_would_be_lost(heap: share.Heap) -> None:
    numpy_ma: Any = np.ma
    masked = numpy_ma.array([1.0, 2.0], mask=[False, True])
    a = shared(heap, 0, "d")
    takes: list[Callable[[Any], object]] = [
        share.array,
        lambda data: share.array(data, "float32"),
        a.extend,
    ]
    for take in takes:
        with pytest.raises(TypeError, match=r"lose its mask: share its filled\(value\)"):
            take(masked)
    a.extend(masked.filled(-1))
    assert a.tolist() == [1.0, -1.0]


def test_a_process_that_is_killed_while_it_changes_an_array_costs_nobody_anything(
    heap: share.Heap,
) -> None:
    a = shared(heap, 1, "l")
    ready = multiprocessing.Semaphore(0)

    def work() -> None:
        ready.release()
        while True:
            a.extend([1] * 100)
            a.add(0, 1)
            np.asarray(a)
            a.resize(1)

    for _ in range(20):
        child = in_child(work)
        ready.acquire()
        before = a[0]
        while a[0] < before + 10:
            assert set(a.tolist()[1:]) <= {1}
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
    a.resize(1)
    assert a.add(0, 1) >= 200
    heap.gc()
    contents = heap.statistics().contents
    assert contents is not None
    assert contents.lost_bytes == 0
    assert contents.types["array"].objects == contents.types["buffer"].objects == 1
