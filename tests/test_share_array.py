"""Shared arrays: what they are made of, and how they look to Python and to other libraries."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import share_workers
from forked import ended, in_child
from shared_arrays import shared

from ungil import share

RECORD = [("x", "f8"), ("y", "i4"), ("name", "S5")]
DTYPES = ["f8", "f4", "i8", "u1", "?", "c16", "f2", ">i4", "U3", RECORD]


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 28)


def test_numpy_reads_and_writes_the_memory_of_all_processes(heap: share.Heap) -> None:
    heap.root["a"] = share.array((3, 4), "float32")
    a: share.array = heap.root["a"]
    here = np.asarray(a)
    assert here.shape == a.shape == (3, 4)
    assert here.dtype == a.dtype == np.float32

    def work() -> None:
        there: Any = np.asarray(heap.root["a"])
        there[1] = 7
        assert here[1, 2] == 7

    assert ended(in_child(work)) == 0
    assert here.tolist() == [[0] * 4, [7] * 4, [0] * 4]
    assert np.shares_memory(here, a.numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_data_of_any_dtype_and_order_are_copied_as_they_are(heap: share.Heap, dtype: Any) -> None:
    whole = np.zeros((4, 6), dtype)
    whole.view("u1")[:] = np.arange(whole.nbytes).reshape(4, -1) % 2
    for data in (whole, whole[::2, ::-3], np.asfortranarray(whole), whole[:1], whole[:0], whole[0]):
        a = shared(heap, data)
        assert a.dtype == data.dtype
        assert a.shape == data.shape
        assert np.array_equal(a.numpy(), data)
        assert a.tolist() == data.tolist()
        assert a.tobytes() == data.tobytes()
        assert shared(heap, data.shape, dtype).dtype == data.dtype


def test_an_int_of_any_type_is_a_shape_as_for_numpy(heap: share.Heap) -> None:
    for seven in 7, np.int64(7), np.uint8(7):
        assert np.array_equal(shared(heap, seven), np.zeros(seven))
        assert np.array_equal(shared(heap, (seven, 2)), np.zeros((seven, 2)))
    for item in np.int64(7), 7.5, np.float32(0.5), True:
        assert np.array_equal(shared(heap, [item]), np.array([item]))


def test_records_keep_their_offsets(heap: share.Heap) -> None:
    inner = np.dtype([("a", "i2"), ("b", "f8", (2,))], align=True)
    outer = np.dtype([("id", "u1"), ("inner", inner), ("colon_free", "S3")])
    a = shared(heap, 3, outer)
    a[1]["inner"]["b"][1] = 2.5
    a[2] = (7, (1, [3, 4]), b"abc")
    a.append((8, (2, [5, 6]), b"x"))
    seen = np.asarray(a)
    assert seen.dtype == outer
    assert seen[1]["inner"]["b"].tolist() == [0, 2.5]
    assert seen[2].tolist()[0] == 7
    assert seen["id"].tolist() == [0, 0, 7, 8]


def test_handles_of_arrays_go_to_other_processes(heap: share.Heap) -> None:
    a = shared(heap, np.arange(6).reshape(2, 3))
    assert pickle.loads(pickle.dumps(a)) is a
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            doubled: share.array = pool.apply(share_workers.doubled, (a,))
        assert doubled is a
    assert a.tolist() == [[0, 4, 8], [12, 16, 20]]


def test_other_libraries_take_the_memory_as_it_is(heap: share.Heap) -> None:
    a = shared(heap, np.arange(6, dtype="f8").reshape(2, 3))
    seen = np.from_dlpack(a)
    a[0, 0] = 42
    assert seen[0, 0] == 42
    interface = a.__array_interface__
    assert interface["shape"] == (2, 3)
    wrapped: Any = np.asarray(type("Other", (), {"__array_interface__": interface})())
    a.resize(100)
    assert wrapped[0, 0] == 42
    assert np.asarray(a, "f4").dtype == np.float32
    assert np.array(a, copy=True)[0, 0] == 42
    assert np.add(a, 1)[0, 0] == 43
    assert memoryview(a).toreadonly().readonly
    with pytest.raises(ValueError, match="read-only"):
        a.numpy(readonly=True)[0] = 1


def test_an_array_is_a_sequence(heap: share.Heap) -> None:
    a = shared(heap, [1, 2, 3])
    assert list(a) == [1, 2, 3]
    assert 2 in a
    assert 9 not in a
    assert a == shared(heap, [1, 2, 3])
    assert a == array("l", [1, 2, 3])
    assert a != shared(heap, [1, 2, 4])
    assert a != shared(heap, (3, 1), "l")
    assert a != [1, 2, 3]
    assert (np.array([1, 0, 3]) == a).tolist() == [True, False, True]
    assert repr(a) == "share.array([1, 2, 3], 'l')"
    assert repr(shared(heap, (1000, 2), "f4")) == "<share.array of shape (1000, 2), format 'f'>"
    assert "unshared" in repr(share.array(3))
    copied = copy.deepcopy(a)
    assert type(copied) is np.ndarray
    a[0] = 9
    assert copied.tolist() == [1, 2, 3]
    assert copy.copy(a).tolist() == [9, 2, 3]
    assert (a.ndim, a.size, a.nbytes, a.itemsize) == (1, 3, 24, 8)
    rows = list(shared(heap, np.eye(2)))
    assert [row.tolist() for row in rows] == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


MISTAKES: list[tuple[Callable[[share.Heap], object], type[Exception], str]] = [
    (lambda heap: share.array(3, "O"), TypeError, "use a share.list"),
    (lambda heap: share.array(np.zeros(3, "M8[s]")), TypeError, r"view\('int64'\)"),
    (lambda heap: share.array(np.array(5.0)), ValueError, "at least one axis"),
    (lambda heap: share.array(()), TypeError, "a tuple of at least one"),
    (lambda heap: share.array(-1), ValueError, "shorter than 0"),
    (lambda heap: share.array("abc"), TypeError, "not from str"),
    (lambda heap: share.array(7.0), TypeError, "not from float"),
    (lambda heap: share.array(np.float64(7)), ValueError, "put them into a list, or give a shape"),
    (lambda heap: share.array(True), TypeError, "a shape is an int or .*, not True"),
    (lambda heap: share.array((True, 2)), TypeError, r"a shape is .*, not \(True, 2\)"),
    (lambda heap: share.array(5, "zz"), TypeError, "no dtype 'zz'"),
    (lambda heap: share.array([1, 2], capacity=1), ValueError, "less than the length, 2"),
    (lambda heap: share.array([1.5], "l"), TypeError, "float"),
    (lambda heap: shared(heap, 1 << 50), MemoryError, "no room"),
    (lambda heap: share.array(3).append(1), RuntimeError, "not in a heap yet"),
    (lambda heap: len(share.array(3)), RuntimeError, "not in a heap yet"),
    (lambda heap: np.asarray(share.array(3)), RuntimeError, "not in a heap yet"),
    (lambda heap: heap.root.update(n=np.zeros(3)), TypeError, r"share\.array\(\.\.\.\)"),
    (lambda heap: heap.root.update(n=array("d")), TypeError, r"share\.array\(\.\.\.\)"),
    (lambda heap: shared(heap, 3, "B").add(0, 256), OverflowError, "256 does not fit"),
    (lambda heap: shared(heap, 3, "B").add(0, -1), OverflowError, r"the sum 0 \+ -1"),
    (lambda heap: shared(heap, 3, "l").append(1 << 70), OverflowError, "does not fit"),
    (lambda heap: shared(heap, 3, "c16").add(0, 1), TypeError, "items of one number"),
    (lambda heap: shared(heap, (3, 2)).add(0, 1), TypeError, "one integer for each axis"),
    (lambda heap: shared(heap, 3).add(np.array([1]), 1), TypeError, "one integer for each axis"),
    (lambda heap: shared(heap, 3)[3], IndexError, "out of range"),
    (lambda heap: shared(heap, (3, 2, 2))[0, 5, np.array([0])], IndexError, "index 5 is out of"),
    (lambda heap: shared(heap, (3, 2))[0, 2], IndexError, "out of range"),
    (lambda heap: shared(heap, (3, 2)).extend(np.zeros((1, 3))), ValueError, "do not fit"),
]


@pytest.mark.parametrize(("wrong", "error", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_one_sentence(
    heap: share.Heap,
    wrong: Callable[[share.Heap], object],
    error: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(error, match=sentence):
        wrong(heap)


def test_who_takes_it_for_an_array_of_numpy_is_told_where_that_is(heap: share.Heap) -> None:
    a: Any = heap.share(share.array([1.0, 2.0]))
    with pytest.raises(AttributeError) as caught:
        a.sum()
    assert str(caught.value) == (
        "'share.array' object has no attribute 'sum'; numpy() returns an array of the same memory, "
        "which has: .numpy().sum"
    )
    assert a.numpy().sum() == 3.0
    assert not hasattr(a, "summe")


def test_plain_numbers_need_no_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from ungil import share
heap = share.Heap(max_size=1 << 24)
heap.root["a"] = share.array(3, "float64")
a = heap.root["a"]
a[1] = 2.5
a.append(4)
a.extend([5.5, 6])
assert a.add(0, 1) == 0 and a.tolist() == list(a) == [1, 2.5, 0, 4, 5.5, 6]
rows = heap.share(share.array((0, 2), "float64"))
rows.append([1, 2])
rows.extend([[3, 4], (5, 6)])
assert rows.tolist() == [[1, 2], [3, 4], [5, 6]]
m = heap.share(share.array(memoryview(bytes(range(6))).cast("B", (2, 3))))
assert m[1, 2] == 5 and memoryview(m).shape == (2, 3)
memoryview(a)[0] = 8
assert a[0] == 8 and heap.share(share.array([1, 2]))[-1] == 2
for wrong in (lambda: a.numpy(), lambda: m[0], lambda: share.array(3, [("x", "f8")])):
    try:
        wrong()
    except ModuleNotFoundError as error:
        print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout.count("needs numpy: pip install numpy\n") == 3
