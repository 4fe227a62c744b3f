"""Tasks that submit tasks to the `share.Pool` that runs them, when something goes wrong."""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.share._pool import calls, nested
from ungil.share._pool.cluster import Cluster


def test_a_shared_object_of_another_heap_comes_back_to_the_task_that_asked() -> None:
    other = share.Heap(max_size=1 << 26).share([7])
    with share.Pool(1, "fork") as pool:
        assert pool.submit(tasks.nested_same, pool, other).result(PATIENCE_S) is other


def test_what_a_task_has_submitted_runs_though_its_worker_died_before_anybody_knew() -> None:
    heap = share.Heap(max_size=1 << 26)
    counts = heap.share({"asked": 0})
    with share.Pool(1, "fork", heap=heap) as pool:
        assert pool.submit(tasks.square, 2).result(PATIENCE_S) == 4
        core: Any = pool._core  # pyright: ignore[reportPrivateUsage]
        (worker,) = pool.worker_pids()
        with core._collecting:
            dies = pool.submit(tasks.ask_and_die, pool, counts)
            while worker in pool.worker_pids():
                os.sched_yield()
        with pytest.raises(share.WorkerDied):
            dies.result(PATIENCE_S)
    assert counts["asked"] == 1


def test_a_task_can_submit_after_a_thread_of_it_could_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results: deque[Any] = deque()
    inbox: deque[Any] = deque()
    mail, bell = threading.Semaphore(0), threading.Semaphore(0)
    place: Any = SimpleNamespace(
        line=SimpleNamespace(results=results, bell=bell),
        desk=SimpleNamespace(inbox=inbox, mail=mail),
        worker=1,
    )
    asker = nested._Asker(place)  # pyright: ignore[reportPrivateUsage]

    def fails(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as failing:
        failing.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            asker.submit(0.0, 0, b"", "square")
    assert not results
    future = asker.submit(0.0, 0, b"", "square")
    (asked,) = results
    number: int = calls.value_of(asked)[1]
    inbox.append(calls.result(number, calls.VALUE, 9))
    mail.release()
    assert future.result(PATIENCE_S) == 9


def test_a_task_of_a_cluster_is_under_way_until_everybody_knows_its_end() -> None:
    inner: Future[int] = Future()

    class Here(Cluster):
        def start(self, fn: Any, args: Any, kwargs: Any, retries: int) -> Any:
            return inner

    cluster = Here(1)
    future = cluster.send(tasks.square, (3,), {}, 0.0, 0)
    told: list[bool] = []
    future.add_done_callback(lambda _: told.append(cluster.join(0)))
    under_way: set[Any] = cluster._under_way  # pyright: ignore[reportPrivateUsage]
    future.add_done_callback(lambda _: told.append(future in under_way))
    inner.set_result(9)
    assert (future.result(0), told, under_way) == (9, [True, True], set())
