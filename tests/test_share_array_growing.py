"""Shared arrays that grow and move: their rows, and the views that others have of them."""

import multiprocessing
import os
import signal
from typing import Any

import numpy as np
import pytest
from forked import ended, in_child
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_arrays import shared

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 28)


def bytes_of_buffers(heap: share.Heap) -> int:
    contents = heap.statistics().contents
    assert contents is not None
    return contents.types["buffer"].bytes


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
    (0, "u1", "extend", np.array([1.9, np.nan]), TypeError, "items of dtype float64 are not"),
    (0, "u1", "extend", [1.9], TypeError, "float"),
    (0, "i8", "extend", np.array([1 << 63], "u8"), OverflowError, "9223372036854775808 does not"),
    (0, ">i4", "extend", [1.9], TypeError, "items of dtype float64 are not converted to >i4"),
    (0, "f8", "extend", np.array([1j]), TypeError, "items of dtype complex128 are not"),
    (0, "?", "extend", np.array(["x"]), TypeError, "items of dtype <U1 are not converted to bool"),
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
