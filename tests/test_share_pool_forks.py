"""What a forked child of the program does with a `share.Pool` leaves its parent's tasks alone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share


def told_by_child(run: Callable[[], object]) -> str:
    """Forks, and returns what the child got or raised; nothing if it waits for ever."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        try:
            said = repr(run())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as end:
        said = end.read().decode()
    os.waitpid(child, 0)
    return said


def descriptors() -> list[str]:
    """What this process has open, without what only waits to be collected."""
    gc.collect()
    return sorted(it.name for it in Path("/proc/self/fd").iterdir())


def written_pipes(pid: int | None) -> list[str]:
    """The pipes of which a process has the end that is written to."""
    ends = [*Path(f"/proc/{pid}/fd").iterdir()]
    # The permissions of such a link are those of the descriptor.
    return [str(it.readlink()) for it in ends if it.lstat().st_mode & 0o200]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_child_that_leaves_a_map_cancels_nothing(ordered: bool) -> None:
    heap = share.Heap(max_size=1 << 26)
    go, gone = heap.share(share.Event()), heap.share(share.Event())
    gone.set()
    with share.Pool(1, "fork", heap=heap) as pool:
        events = [gone, go, go, go]
        results = pool.map(tasks.wait_for, events, ordered=ordered, timeout=PATIENCE_S)
        next(results)
        child = os.fork()
        if not child:
            del results
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        go.set()
        assert len([*results]) == 3


def test_a_child_can_neither_wait_for_a_task_nor_cancel_it() -> None:
    refused = "RuntimeError: only the process that submitted a task can wait for it"
    heap = share.Heap(max_size=1 << 26)
    go = heap.share(share.Event())
    with share.Pool(1, "fork", heap=heap) as pool:
        done = pool.submit(tasks.square, 2)
        assert done.result(PATIENCE_S) == 4
        failed = pool.submit(tasks.fail, "why")
        assert failed.exception(PATIENCE_S)
        runs, waits = pool.submit(tasks.wait_for, go), pool.submit(tasks.square, 3)
        unordered = pool.map(tasks.square, range(2), ordered=False)
        for ask in (
            lambda: waits.result(),
            lambda: waits.exception(),
            lambda: waits.result(PATIENCE_S),
            lambda: wait([done, waits]),
            lambda: next(unordered),
        ):
            assert told_by_child(ask).startswith(refused)
        assert told_by_child(waits.cancel) == "False"
        assert told_by_child(done.result) == "4"
        assert told_by_child(failed.result) == "LookupError: why"
        go.set()
        assert (waits.result(PATIENCE_S), runs.done()) == (9, True)
        assert sorted(unordered) == [0, 1]


def test_a_child_does_not_wait_for_locks_that_a_thread_of_its_parent_held() -> None:
    held, leave = threading.Event(), threading.Event()
    with share.Pool(1, "fork") as pool:
        failed = pool.submit(tasks.fail, "why")
        assert failed.exception(PATIENCE_S)

        def hold() -> None:
            with failed._condition:  # pyright: ignore[reportPrivateUsage]
                held.set()
                leave.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            assert told_by_child(failed.result) == "LookupError: why"
            assert told_by_child(failed.cancelled) == "False"
        finally:
            leave.set()
            thread.join()


def test_ctrl_c_in_a_child_interrupts_no_task_of_its_parent() -> None:
    heap = share.Heap(max_size=1 << 26)
    begun, go = heap.share(share.Event()), heap.share(share.Event())
    with share.Pool(1, "fork", heap=heap) as pool:
        runs: Any = pool.submit(tasks.begin_and_wait, begun, go)
        begun.wait()
        assert told_by_child(lambda: pool.__exit__(KeyboardInterrupt, None, None)) == "None"
        go.set()
        assert runs.result(PATIENCE_S) is None


@pytest.mark.parametrize("forks", [1, 2])
def test_workers_that_were_forked_before_a_fork_failed_do_the_tasks(
    forks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, left = os.fork, [forks]

    def seldom() -> int:
        left[0] -= 1
        if left[0] < 0:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", seldom)
    heap = share.Heap(max_size=1 << 26)
    before = descriptors()
    with share.Pool(4, "fork", heap=heap) as pool:
        pids = {task.result(PATIENCE_S) for task in [pool.submit(os.getpid) for _ in range(20)]}
        workers = pool.worker_pids()
        assert len(workers) == forks
        assert pids <= {*workers}
        assert {*workers} <= {it.pid for it in multiprocessing.active_children()}
    del pool
    assert descriptors() == before


def test_no_worker_keeps_a_pipe_open_whose_end_says_that_another_one_died() -> None:
    heap = share.Heap(max_size=1 << 26)
    here = heap.share(share.Barrier(12))
    with share.Pool(12, "fork", heap=heap) as pool:
        for task in [pool.submit(tasks.meet, here) for _ in range(12)]:
            task.result(PATIENCE_S)
        workers = [it for it in multiprocessing.active_children() if it.pid in pool.worker_pids()]
        # Only ends that are written to: the other one is the parent's, and children inherit it.
        kept = [written_pipes(it.pid) for it in workers]
        for number, worker in enumerate(workers):
            sentinel = str(Path(f"/proc/self/fd/{worker.sentinel}").readlink())
            assert [sentinel in it for it in kept] == [it == number for it in range(12)]


def test_each_worker_has_a_name_of_its_own_and_its_pool_as_parent() -> None:
    heap = share.Heap(max_size=1 << 26)
    here = heap.share(share.Barrier(3))
    with share.Pool(3, "fork", heap=heap) as pool:
        said = [pool.submit(tasks.meet, here) for _ in range(3)]
        those = sorted(it.result(PATIENCE_S) for it in said)
    assert those == [(f"ungil-pool-{it}", os.getpid()) for it in (1, 2, 3)]
