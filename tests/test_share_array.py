"""Shared arrays, seen from Python."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import share_workers
from forked import ended, in_child
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share

RECORD = [("x", "f8"), ("y", "i4"), ("name", "S5")]
DTYPES = ["f8", "f4", "i8", "u1", "?", "c16", "f2", ">i4", "U3", RECORD]


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 28)


def shared(heap: share.Heap, *given: Any, **options: Any) -> share.array:
    made = heap.share(share.array(*given, **options))
    assert isinstance(made, share.array)
    return made


def bytes_of_buffers(heap: share.Heap) -> int:
    contents = heap.statistics().contents
    assert contents is not None
    return contents.types["buffer"].bytes


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


def test_records_keep_their_offsets(heap: share.Heap) -> None:
    inner = np.dtype([("a", "i2"), ("b", "f8", (2,))], align=True)
    outer = np.dtype([("id", "u1"), ("inner", inner), ("colon_free", "S3")])
    a = shared(heap, 3, outer)
    a[1]["inner"]["b"][1] = 2.5
    a[2] = (7, (1, [3, 4]), b"abc")
    a.append((8, (2, [5, 6]), b"x"))
    assert shared(heap, np.int64(2), outer).shape == (2,)
    seen = np.asarray(a)
    assert seen.dtype == outer
    assert seen[1]["inner"]["b"].tolist() == [0, 2.5]
    assert seen[2].tolist()[0] == 7
    assert seen["id"].tolist() == [0, 0, 7, 8]


def test_a_view_keeps_what_it_saw_when_the_array_moves(heap: share.Heap) -> None:
    a = shared(heap, np.arange(1000))
    view = np.asarray(a)
    a.resize(10)
    a.extend(np.full(5, -1))
    # The rows that went are written anew, in the memory that both have.
    assert view[:16].tolist() == [*range(10), *[-1] * 5, 15]
    a.resize(1_000_000)
    a[0] = 99
    assert view.shape == (1000,)
    assert view[0] == 0
    before = bytes_of_buffers(heap)
    del view
    assert before - bytes_of_buffers(heap) >= 8000


def test_room_for_more_keeps_views_views_of_the_array(heap: share.Heap) -> None:
    a = shared(heap, 10, "l", capacity=1000)
    view = np.asarray(a)
    a.extend(range_of(990))
    a[3] = 4
    assert view[3] == 4
    assert np.shares_memory(view, a.numpy())
    a.reserve(5000)
    assert a.capacity >= 5000
    assert not np.shares_memory(view, a.numpy())


def range_of(count: int) -> list[int]:
    return list(range(count))


def test_memory_is_freed_when_the_last_view_of_any_process_is_gone(heap: share.Heap) -> None:
    heap.root["a"] = share.array(np.ones(1 << 20, "u1"))
    seen, go_on = multiprocessing.Event(), multiprocessing.Event()

    def work() -> None:
        view = np.asarray(heap.root["a"])
        seen.set()
        go_on.wait()
        assert view.all()
        os.kill(os.getpid(), signal.SIGKILL)

    child = in_child(work)
    seen.wait()
    del heap.root["a"]
    heap.gc()
    assert bytes_of_buffers(heap) >= 1 << 20
    go_on.set()
    assert ended(child) == -signal.SIGKILL
    collected = heap.gc()
    assert collected is not None
    assert collected.freed_bytes >= 1 << 20
    assert bytes_of_buffers(heap) == 0


def test_a_view_outlives_the_heap_and_the_proxy(heap: share.Heap) -> None:
    own = share.Heap(max_size=1 << 24)
    view = np.asarray(own.share(share.array([1.5, 2.5])))
    own.close()
    del own
    assert view.tolist() == [1.5, 2.5]


Change = tuple[str, Any]
SMALL = st.integers(0, 9)
ROWS = st.lists(st.lists(st.integers(-5, 5), min_size=2, max_size=2), max_size=20)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("extend"), ROWS),
    st.tuples(st.just("append"), st.lists(st.integers(-5, 5), min_size=2, max_size=2)),
    st.tuples(st.just("resize"), st.integers(0, 40)),
    st.tuples(st.just("reserve"), st.integers(0, 80)),
    st.tuples(st.just("set"), st.tuples(SMALL, st.integers(0, 1), st.integers(-5, 5))),
    st.tuples(st.just("add"), st.tuples(SMALL, st.integers(-2, 1), st.integers(-5, 5))),
    st.tuples(st.just("fill"), st.tuples(SMALL, SMALL, st.integers(-5, 5))),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["i4", "f8", "i2", "c8", "f2"]), ROWS, st.lists(CHANGES, max_size=12))
def test_an_array_is_what_numpy_makes_of_the_same_changes(
    dtype: str, rows: list[list[int]], changes: list[Change]
) -> None:
    heap = share.Heap(max_size=1 << 24)
    model: Any = np.array(rows, dtype).reshape(-1, 2)
    a = shared(heap, model)
    views: list[tuple[Any, Any]] = []
    for name, given_ in changes:
        if name == "extend":
            added: Any = np.array(given_, dtype).reshape(-1, 2)
            a.extend(added)
            model = np.concatenate([model, added])
        elif name == "append":
            a.append(given_)
            model = np.concatenate([model, np.array([given_], dtype)])
        elif name == "resize":
            a.resize(given_)
            kept = model[:given_]
            model = np.concatenate([kept, np.zeros((given_ - len(kept), 2), dtype)])
        elif name == "reserve":
            old: Any = np.asarray(a)
            a.reserve(given_ + a.capacity)
            if len(a):
                assert given_ == 0 or not np.shares_memory(old, a.numpy())
            if given_:
                views.append((old, old.copy()))
        elif given_[0] >= len(model):
            with pytest.raises(IndexError):
                a[given_[0], 0]
        elif name == "fill":
            a[given_[0] : given_[1]] = given_[2]
            model[given_[0] : given_[1]] = given_[2]
        elif name == "set" or dtype in ("c8", "f2"):
            row, column, number = given_
            a[row, column] = number
            model[row, column] = number
        else:
            row, column, number = given_
            assert a.add((row, column), number) == model[row, column]
            model[row, column] += number
        assert np.array_equal(np.asarray(a), model)
        assert a.shape == model.shape
    # An array that has moved writes no more where it was.
    for old, then in views:
        assert np.array_equal(old, then)


def test_rows_without_items_are_counted(heap: share.Heap) -> None:
    a = shared(heap, (2, 0))
    a.extend(np.zeros((3, 0)))
    a.append([])
    assert a.shape == np.asarray(a).shape == (6, 0)
    with pytest.raises(ValueError, match="do not fit"):
        a.extend(np.zeros((1, 1)))
    whole = shared(heap, (2, 3))
    with pytest.raises(ValueError, match="24 bytes are not 2 rows of 24 bytes each"):
        whole.extend_by(bytes(24), 2)


ROW_MISTAKES: list[tuple[Any, Any, str, Any, type[Exception], str]] = [
    ((0, 3), "f8", "append", [7], ValueError, r"\[7\] is not of shape \(3,\)"),
    ((0, 3), "f8", "append", 5, ValueError, r"5 is not of shape \(3,\)"),
    ((0, 3), "f8", "append", [1, 2], ValueError, r"\[1, 2\] is not of shape \(3,\)"),
    ((0, 3), "f8", "append", [[1, 2, 3]], ValueError, r"is not of shape \(3,\)"),
    ((0, 3), "f8", "append", np.float64(5), ValueError, r"a row of shape \(\) does not fit"),
    ((0, 3), "f8", "append", np.zeros(1), ValueError, r"a row of shape \(1,\) does not fit"),
    ((0, 3), "f8", "append", np.zeros((1, 3)), ValueError, "does not fit the rows of the array"),
    ((0, 3), "?", "append", [True], ValueError, "does not fit the rows of the array"),
    ((0, 2), [("a", "i4")], "append", [(1,)], ValueError, "does not fit the rows of the array"),
    ((0, 3), "u1", "append", [1.9, 1, 2], TypeError, "float"),
    ((0, 3), "u1", "append", [300, 1, 2], OverflowError, "greater than maximum"),
    ((0, 3), "f8", "extend", [1, 2, 3], ValueError, r"1 is not of shape \(3,\)"),
    ((0, 3), "f8", "extend", [[1, 2, 3], [4]], ValueError, r"\[4\] is not of shape \(3,\)"),
    (0, "f8", "extend", [1, [2]], ValueError, r"\[2\] is not of shape \(\)"),
    (0, "f8", "extend", 7, TypeError, "not as int"),
    (0, "f8", "extend", iter([7]), TypeError, "not as list_iterator"),
    (0, "f8", "extend", ["x"], TypeError, "must be real number, not str"),
    (0, "u1", "extend", np.array([300, -1]), OverflowError, "-1 does not fit"),
    (0, "u1", "extend", np.array([300]), OverflowError, "300 does not fit"),
    (0, "u1", "extend", [300], OverflowError, "greater than maximum"),
    (0, "u1", "extend", np.array([1.9, np.nan]), TypeError, "items of dtype float64 do not"),
    (0, "u1", "extend", [1.9], TypeError, "float"),
    (0, "i8", "extend", np.array([1 << 63], "u8"), OverflowError, "9223372036854775808 does not"),
    (0, ">i4", "extend", [1.9], TypeError, "items of dtype float64 do not become >i4"),
    (0, "f8", "extend", np.array([1j]), TypeError, "items of dtype complex128 do not"),
    (0, "?", "extend", np.array(["x"]), TypeError, "items of dtype <U1 do not become bool"),
]


@pytest.mark.parametrize(("shape", "dtype", "name", "given_", "error", "said"), ROW_MISTAKES)
def test_rows_that_do_not_fit_are_refused_as_a_whole(
    heap: share.Heap,
    shape: Any,
    dtype: Any,
    name: str,
    given_: object,
    error: type[Exception],
    said: str,
) -> None:
    a = shared(heap, shape, dtype)
    with pytest.raises(error, match=said):
        getattr(a, name)(given_)
    assert len(a) == 0


ROWS_TAKEN: list[tuple[Any, Any, Any, list[Any]]] = [
    ((0, 3), "f8", [[1, 2, 3], (4, 5, 6)], [[1, 2, 3], [4, 5, 6]]),
    ((0, 2), "u1", [np.array([1, 2]), [np.int64(3), True]], [[1, 2], [3, 1]]),
    ((0, 2, 2), "i4", [[[1, 2], [3, 4]]], [[[1, 2], [3, 4]]]),
    ((0, 2), "?", [[1, 0], [0, 7]], [[True, False], [False, True]]),
    ((0, 3), "f8", [], []),
    ((0, 0), "f8", [[], []], [[], []]),
    (0, "f8", (1, 2.5), [1, 2.5]),
    (0, "i4", bytearray(b"ab"), [97, 98]),
    (0, "u1", np.array([0, 255]), [0, 255]),
    (0, "f4", np.array([0.5, 2]), [0.5, 2]),
    (0, "f8", np.array([3]), [3]),
    (0, "c16", [1, 2j], [1, 2j]),
    (0, "?", np.array([2, 0]), [True, False]),
    (0, ">i4", [5], [5]),
    (0, "S3", [b"ab"], [b"ab"]),
    (0, [("a", "i4"), ("b", "f8")], [(1, 2.5)], [(1, 2.5)]),
]


@pytest.mark.parametrize(("shape", "dtype", "given_", "kept"), ROWS_TAKEN)
def test_rows_of_other_forms_and_dtypes_are_taken_where_no_value_changes(
    heap: share.Heap, shape: Any, dtype: Any, given_: Any, kept: list[Any]
) -> None:
    a, b = shared(heap, shape, dtype), shared(heap, shape, dtype)
    a.extend(given_)
    assert a.tolist() == kept
    for row in given_:
        b.append(row)
    assert b.tolist() == kept


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


def test_handles_of_arrays_go_to_other_processes(heap: share.Heap) -> None:
    a = shared(heap, np.arange(6).reshape(2, 3))
    assert pickle.loads(pickle.dumps(a)) is a
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            doubled: share.array = pool.apply(share_workers.doubled, (a,))
        assert doubled is a
    assert a.tolist() == [[0, 4, 8], [12, 16, 20]]


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
