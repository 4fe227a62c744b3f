"""`share.Manager`: what it has that multiprocessing's has not, and what it refuses."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_change_its_objects(method: str) -> None:
    with share.Manager(max_size=1 << 26) as manager:
        made = (manager.Namespace(a=1), manager.Value("i", 1), manager.Array("i", [0, 0]))
        barrier = manager.Barrier(1, timeout=60)
        context: Any = multiprocessing.get_context(method)
        child = context.Process(target=tasks.fill, args=(*made, barrier))
        child.start()
        child.join()
        assert child.exitcode == 0
        namespace, value, array = made
        assert [namespace.seen[:], value.value, array[:].tolist()] == [[1], 2, [0, 7]]


def test_what_is_put_in_is_shared_and_not_copied() -> None:
    manager = share.Manager(max_size=1 << 26)
    rows = manager.dict(row=[])
    rows["row"].append(1)
    assert rows["row"][:] == [1]
    with pytest.raises(TypeError, match=r"declare its class with @share\.struct"):
        rows["object"] = object()


def test_an_array_keeps_its_type_and_its_length() -> None:
    array = share.Manager(max_size=1 << 26).Array("b", [1, 2, 3])
    with pytest.raises(OverflowError):
        array[0] = 1000
    with pytest.raises(TypeError):
        array[0] = "one"
    with pytest.raises(ValueError, match="an Array keeps its 3 items"):
        array[:] = [1]
    array[1:] = [5, 6]
    assert (len(array), list(array), array[-1]) == (3, [1, 5, 6], 6)
    assert repr(array) == "Array('b', [1, 5, 6])"


def test_a_namespace_has_the_attributes_that_it_was_given() -> None:
    namespace = share.Manager(max_size=1 << 26).Namespace(b=2, a=1, _hidden=3)
    assert repr(namespace) == "Namespace(a=1, b=2)"
    assert repr(pickle.loads(pickle.dumps(namespace))) == repr(namespace)
    for ask in (lambda: namespace.c, lambda: delattr(namespace, "c")):
        with pytest.raises(AttributeError, match="the namespace has no attribute 'c'"):
            ask()


def test_what_needs_a_server_is_refused_in_a_sentence() -> None:
    manager = share.Manager(max_size=1 << 26)
    with pytest.raises(NotImplementedError, match="no server in which a Thing could live"):
        manager.register("Thing", object)
    for refused in (manager.connect, manager.get_server):
        with pytest.raises(NotImplementedError, match="pass its objects to the other process"):
            refused()


def test_a_call_that_exits_is_told_to_its_callback() -> None:
    told: list[BaseException] = []
    with share.Manager(max_size=1 << 26) as manager, manager.Pool(1) as pool:
        outcome = pool.apply_async(tasks.exit_, (3,), error_callback=told.append)
        with pytest.raises(SystemExit):
            outcome.get(PATIENCE_S)
    assert [type(error) for error in told] == [SystemExit]


@pytest.mark.parametrize("method", ["imap", "imap_unordered"])
@pytest.mark.parametrize("chunksize", [1, 2])
def test_the_next_result_of_an_imap_is_waited_for_as_long_as_is_said(
    method: str, chunksize: int
) -> None:
    with share.Manager(max_size=1 << 26) as manager, manager.Pool(1) as pool:
        go = manager.Event()
        results = getattr(pool, method)(tasks.wait_for, [go] * 3, chunksize)
        for timeout in (0, 0.01):
            with pytest.raises(multiprocessing.TimeoutError):
                results.next(timeout)
        go.set()
        pids = [results.next(timeout=PATIENCE_S), results.next(PATIENCE_S), next(results)]
        assert len(set(pids)) == 1
        with pytest.raises(StopIteration):
            results.next(0)


def test_an_error_in_an_imap_comes_in_its_place_and_the_results_after_it_too() -> None:
    with share.Manager(max_size=1 << 26) as manager, manager.Pool(1) as pool:
        results = pool.imap(tasks.square, [1, "two", 3])
        assert results.next(PATIENCE_S) == 1
        with pytest.raises(TypeError):
            results.next(PATIENCE_S)
        assert [*results] == [9]
        with pytest.raises(ValueError, match="chunksize must be >= 1"):
            pool.imap(tasks.square, [1], 0)


def test_a_manager_that_is_shut_down_makes_nothing_and_its_objects_go_on() -> None:
    manager = share.Manager(max_size=1 << 26)
    items, pool = manager.list([1]), manager.Pool(1)
    assert pool.apply(tasks.square, (3,)) == 9
    manager.shutdown()
    items.append(2)
    assert items[:] == [1, 2]
    with pytest.raises(ValueError, match="the manager has been shut down"):
        manager.list()
    with pytest.raises(ValueError, match="Pool not running"):
        pool.apply(tasks.square, (3,))
