"""The two threads of a `share.Pool` go on whatever happens, or break it and say why."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.share._pool import gate, staff
from ungil.share._pool.core import Core
from ungil.share._pool.limits import Limits


def core_of(pool: share.Pool) -> Any:
    return pool._core  # pyright: ignore[reportPrivateUsage]


class Wrapped:
    """The tasks in a line, without some methods."""

    def __init__(self, inner: Any, **instead: Any) -> None:
        self.__dict__.update(instead)
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __len__(self) -> int:
        return len(self._inner)


def wrap_tasks(core: Any, **instead: Any) -> None:
    core.line = core.line._replace(tasks=Wrapped(core.line.tasks, **instead))


def full(*_: Any) -> Any:
    raise MemoryError("the heap is full")


@pytest.mark.parametrize("place", ["line", "desk"])
def test_a_task_that_cannot_run_again_in_a_full_heap_fails_alone(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with share.Pool(1, "fork", retries=1) as pool:
        assert pool.submit(tasks.square, 2).result(PATIENCE_S) == 4
        with monkeypatch.context() as filled:
            core, line = core_of(pool), core_of(pool).line
            if place == "line":
                wrap_tasks(core, appendleft=full)
            else:
                filled.setattr(staff, "new_desk", full)
            with pytest.raises(MemoryError, match="the heap is full"):
                pool.submit(tasks.die).result(PATIENCE_S)
            core.line = line
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_tasks_that_wait_for_a_worker_that_does_not_fit_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with share.Pool(1, "fork") as pool:
        go = pool.heap.share(share.Event())
        dies, waits = pool.submit(tasks.wait_and_die, go), pool.submit(tasks.square, 3)
        monkeypatch.setattr(staff, "new_desk", full)
        go.set()
        with pytest.raises(share.WorkerDied):
            dies.result(PATIENCE_S)
        with pytest.raises(BrokenProcessPool, match="no worker could be started: the heap is full"):
            waits.result(PATIENCE_S)


@pytest.mark.parametrize("limit_s", [1e10, float("inf")])
def test_a_time_limit_may_be_as_long_as_you_like(limit_s: float) -> None:
    with share.Pool(1, "fork", task_timeout=limit_s) as pool:
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9
        with pytest.raises(share.WorkerDied):
            pool.submit(tasks.die).result(PATIENCE_S)


def test_each_worker_has_one_limit_at_most() -> None:
    limits = Limits()
    assert limits.left_s() is None
    limits.begin(1, 1, 0.0)
    limits.begin(1, 2, 1e10)
    assert limits.left_s() == 3600.0
    assert limits.take_over() == []
    limits.begin(2, 3, 0.0)
    assert limits.left_s() == 0.0
    assert [(limit.worker, limit.number) for limit in limits.take_over()] == [(2, 3)]
    limits.forget(1)
    assert limits.left_s() is None


@pytest.mark.parametrize(
    ("owner", "name"), [(staff.Staff, "_end_overdue"), (Core, "collect_until_over")]
)
def test_a_failure_of_the_pools_own_threads_breaks_it_and_says_why(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    def fails(_: Any) -> None:
        raise LookupError("odd")

    monkeypatch.setattr(owner, name, fails)
    with share.Pool(1, "fork") as pool:
        go = pool.heap.share(share.Event())
        with pytest.raises(BrokenProcessPool, match="own thread failed: LookupError: odd"):
            # One with a limit is told to both threads.
            pool.limited(task_timeout=PATIENCE_S).submit(tasks.wait_for, go).result(PATIENCE_S)


def test_a_callback_that_raises_the_exit_of_a_task_is_logged_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = threading.Event()
    with share.Pool(1, "fork") as pool:
        go = pool.heap.share(share.Event())
        pool.submit(tasks.wait_for, go)
        exits, last = pool.submit(tasks.exit_, 3), pool.submit(tasks.square, 3)
        also = threading.Event()
        exits.add_done_callback(lambda future: future.result())
        exits.add_done_callback(lambda _: also.set())
        last.add_done_callback(lambda _: told.set())
        with caplog.at_level(logging.ERROR, "concurrent.futures"):
            go.set()
            assert told.wait(PATIENCE_S)
        assert also.is_set()
    assert "exception calling callback" in caplog.text


def test_a_callback_cannot_wait_for_the_end_of_the_thread_that_calls_it() -> None:
    told: list[str] = []
    called = threading.Event()
    pool = share.Pool(1, "fork")
    go = pool.heap.share(share.Event())

    def end(_: Any) -> None:
        try:
            pool.shutdown()
        except RuntimeError as error:
            told.append(str(error))
        called.set()

    pool.submit(tasks.wait_for, go).add_done_callback(end)
    go.set()
    assert called.wait(PATIENCE_S)
    assert told == ["cannot join current thread"]
    pool.shutdown()


def test_cancelling_a_task_wakes_who_waits_for_it() -> None:
    with share.Pool(1, "fork") as pool:
        go = pool.heap.share(share.Event())
        pool.submit(tasks.wait_for, go)
        waits = pool.submit(tasks.square, 3)
        told: list[BaseException] = []

        def wait() -> None:
            try:
                waits.result()
            except CancelledError as error:
                told.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while core_of(pool)._awaited is not waits:
            os.sched_yield()
        assert waits.cancel()
        thread.join(PATIENCE_S)
        try:
            assert told
        finally:
            go.set()
            thread.join()


def test_threads_that_wait_for_tasks_of_two_pools_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_there = threading.Event()
    main, inner = threading.current_thread(), gate._gate  # pyright: ignore[reportPrivateUsage]

    def acquire() -> bool:
        if threading.current_thread() is not main:
            is_there.set()
        return inner.acquire()

    monkeypatch.setattr(gate, "_gate", Wrapped(inner, acquire=acquire))
    with share.Pool(1, "fork") as one, share.Pool(1, "fork") as other:
        first: Any = one.submit(tasks.square, 2)
        second: Any = other.submit(tasks.square, 3)

        def hold_both() -> None:
            with second._condition, first._condition:
                pass

        thread = threading.Thread(target=hold_both)
        with first._condition:
            thread.start()
            assert is_there.wait(PATIENCE_S)
            # Without the gate the thread has it, and waits for the other one.
            assert core_of(other).lock.acquire(timeout=PATIENCE_S)
            core_of(other).lock.release()
        thread.join()
        assert (first.result(PATIENCE_S), second.result(PATIENCE_S)) == (4, 9)


def test_a_worker_that_just_takes_a_task_is_not_there_for_the_next_one() -> None:
    with share.Pool(2, "spawn") as pool:
        begun, go = pool.heap.share(share.Event()), pool.heap.share(share.Event())
        first = pool.submit(tasks.begin_and_wait, begun, go)
        assert begun.wait(PATIENCE_S)
        assert len(pool.worker_pids()) == 1
        (worker,) = core_of(pool).staff.workers.values()
        # As it says itself for a moment. In a task it says nothing else.
        worker.desk.now[0] = -1
        second = pool.submit(tasks.square, 3)
        workers = pool.worker_pids()
        go.set()
        assert second.result(PATIENCE_S) == 9
        assert len(workers) == 2
        first.result(PATIENCE_S)


def test_leaving_a_map_takes_its_tasks_out_of_the_line_in_one_go() -> None:
    def one_by_one(_: Any) -> None:
        raise AssertionError("it reads the whole line for each task")

    with share.Pool(1, "fork") as pool:
        begun, go = pool.heap.share(share.Event()), pool.heap.share(share.Event())
        order = pool.heap.share([-1])
        core, line = core_of(pool), core_of(pool).line
        wrap_tasks(core, remove=one_by_one)
        others = [pool.submit(tasks.begin_and_wait, begun, go)]
        begun.wait()
        for ordered in (True, False):
            others.append(pool.submit(tasks.add_to, order, len(others)))
            results = pool.map(tasks.square, range(50), ordered=ordered, timeout=0)
            others.append(pool.submit(tasks.add_to, order, len(others)))
            with pytest.raises(TimeoutError):
                next(results)
        core.line = line
        assert len(core.pending) == len(others)
        go.set()
        for future in others:
            future.result(PATIENCE_S)
        assert order[:] == [-1, 1, 2, 3, 4]
