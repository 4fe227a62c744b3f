"""Ctrl-C, and threads that cannot start, at any moment of what a `share.Pool` does by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.share._pool import calls
from ungil.share._pool.core import Core
from ungil.share._pool.future import Future

WARDEN = "ungil-pool-workers"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who waits for a task collects."""

    def until_over(core: Any) -> None:
        while not core._is_over:
            core._called.wait()
            core._called.clear()

    monkeypatch.setattr(Core, "collect_until_over", until_over)


def interrupt_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """The first call is interrupted before it has done anything."""
    call: Callable[..., Any] = getattr(owner, name)

    def interrupted(*_: Any) -> None:
        monkeypatch.setattr(owner, name, call)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("owner", "name"), [(calls, "value_of"), (Future, "finish")])
def test_ctrl_c_while_results_are_collected_loses_none(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    with share.Pool(1, "fork") as pool:
        futures = [pool.submit(tasks.square, number) for number in range(3)]
        interrupt_once(monkeypatch, owner, name)
        with pytest.raises(KeyboardInterrupt):
            futures[2].result(PATIENCE_S)
        assert [future.result(PATIENCE_S) for future in futures] == [0, 1, 4]


@pytest.mark.usefixtures("alone")
def test_ctrl_c_in_a_wait_wakes_who_is_to_collect_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    heap = share.Heap(max_size=1 << 26)
    go = heap.share(share.Event())
    collect = Core.collect

    def first(core: Core, *, is_leader: bool = False) -> int:
        monkeypatch.setattr(Core, "collect", second)
        done = collect(core, is_leader=is_leader)
        go.set()
        return done

    def second(_core: Core, *, is_leader: bool = False) -> int:
        assert is_leader
        monkeypatch.setattr(Core, "collect", collect)
        raise KeyboardInterrupt

    with share.Pool(1, "fork", heap=heap) as pool:
        core: Any = pool._core  # pyright: ignore[reportPrivateUsage]
        future = pool.submit(tasks.wait_for, go)
        monkeypatch.setattr(Core, "collect", first)
        with pytest.raises(KeyboardInterrupt):
            future.result(PATIENCE_S)
        assert core.line.bell.value == 1
        assert future.result(PATIENCE_S)


def test_ctrl_c_in_a_callback_is_raised_when_the_others_were_called() -> None:
    told: list[Any] = []

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    with share.Pool(1, "fork") as pool:
        go = pool.heap.share(share.Event())
        pool.submit(tasks.wait_for, go)
        waits = [pool.submit(tasks.square, number) for number in range(2)]
        waits[0].add_done_callback(interrupted)
        for future in waits:
            future.add_done_callback(told.append)
        with pytest.raises(KeyboardInterrupt):
            pool.shutdown(wait=False, cancel_futures=True)
        assert sorted(map(id, told)) == sorted(map(id, waits))
        go.set()


def failing_starts(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, *, after: bool = False
) -> None:
    """A warden cannot be started, or `after` it was, there is an exception."""
    start = threading.Thread.start

    def fails(thread: threading.Thread) -> None:
        if thread.name != WARDEN:
            return start(thread)
        if after:
            start(thread)
        raise error

    monkeypatch.setattr(threading.Thread, "start", fails)


def test_the_task_after_one_whose_pool_could_not_start_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with share.Pool(1, "fork") as pool:
        with monkeypatch.context() as failing:
            failing_starts(failing, RuntimeError("can't start new thread"))
            with pytest.raises(RuntimeError, match="can't start new thread"):
                pool.submit(tasks.square, 2)
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_workers_end_with_a_pool_that_could_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_starts(monkeypatch, RuntimeError("can't start new thread"))
    pool = share.Pool(2, "fork")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.submit(tasks.square, 2)
    workers = pool.worker_pids()
    assert len(workers) == 2
    pool.shutdown()
    assert pool.worker_pids() == []
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_ctrl_c_while_a_pool_starts_forgets_no_thread_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with share.Pool(1, "fork") as pool, monkeypatch.context() as failing:
        failing_starts(failing, KeyboardInterrupt(), after=True)
        with pytest.raises(KeyboardInterrupt):
            pool.submit(tasks.square, 2)
        warden = pool._core.staff.warden  # pyright: ignore[reportPrivateUsage]
        assert warden is not None
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9
    assert not warden.is_alive()
