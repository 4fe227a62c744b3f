"""A worker of a `share.Pool` that dies costs its own task, and nothing else."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pool_soak
import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S, run_python

from ungil import _native, errors, share

METHODS = ("fork", "spawn", "forkserver")


@pytest.mark.parametrize("method", METHODS)
def test_a_death_fails_its_own_task_and_says_which_and_how(method: str) -> None:
    with share.Pool(2, method) as pool:
        pids = {pool.submit(tasks.pid).result(PATIENCE_S)}
        futures = [pool.submit(tasks.square, number) for number in range(20)]
        dies = pool.submit(tasks.die)
        futures += [pool.submit(tasks.square, number) for number in range(20)]
        with pytest.raises(share.WorkerDied, match=r"was killed by SIGKILL while it ran") as caught:
            dies.result(PATIENCE_S)
        assert [future.result(PATIENCE_S) for future in futures] == [n * n for n in range(20)] * 2
        assert caught.value.signal == signal.SIGKILL
        assert caught.value.task == "task 22, die"
        assert caught.value.pid not in pool.worker_pids()
        assert str(caught.value.pid) in str(caught.value)
        pids.add(pool.submit(tasks.pid).result(PATIENCE_S))
    assert isinstance(caught.value, errors.WorkerDied)


@pytest.mark.parametrize("method", METHODS)
def test_the_death_of_a_worker_that_started_later_is_noticed_while_all_others_work(
    method: str,
) -> None:
    heap = share.Heap(max_size=1 << 26)
    over = heap.share(share.Event())
    with share.Pool(2, method, heap=heap) as pool:
        works = pool.submit(tasks.wait_for, over)
        dies = pool.submit(tasks.die)
        with pytest.raises(share.WorkerDied):
            dies.result(PATIENCE_S)
        over.set()
        assert works.result(PATIENCE_S)


def test_a_worker_that_ends_by_itself_has_died_too() -> None:
    with share.Pool(1, "fork") as pool:
        with pytest.raises(share.WorkerDied, match="ended with status 3 while it ran") as caught:
            pool.submit(tasks.leave, 3).result(PATIENCE_S)
        assert caught.value.signal is None
        with pytest.raises(share.WorkerDied, match="killed by SIGTERM"):
            pool.submit(tasks.die, signal.SIGTERM).result(PATIENCE_S)


def test_a_death_is_told_also_where_nobody_knows_how() -> None:
    code = f"""
import signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import share_pool_tasks as tasks
from ungil import share

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with share.Pool(1, "fork") as pool:
    try:
        pool.submit(tasks.die).result()
    except share.WorkerDied as error:
        print(error.signal, error)
    print(pool.submit(tasks.square, 3).result())
"""
    done = run_python("-c", code)
    said = done.stdout.splitlines()
    assert said[0].startswith("None the worker "), done.stderr
    assert said[0].endswith("ended with an unknown status while it ran task 1, die")
    assert said[1:] == ["9"]


def test_a_task_runs_again_as_often_as_it_was_told() -> None:
    heap = share.Heap(max_size=1 << 26)
    counts = heap.share({"begun": 0})
    with share.Pool(1, "fork", heap=heap, retries=2) as pool:
        assert pool.submit(tasks.die_until, counts, 2).result(PATIENCE_S) == 3
        counts["begun"] = 0
        with pytest.raises(share.WorkerDied):
            pool.limited(retries=1).submit(tasks.die_until, counts, 2).result(PATIENCE_S)
    assert counts["begun"] == 2


@pytest.mark.parametrize("point", tasks.POINTS)
def test_a_death_at_any_moment_of_a_task_is_told_of_that_task_alone(point: str) -> None:
    heap = share.Heap(max_size=1 << 26)
    armed = heap.share({"armed": 1})
    counts = heap.share({str(number): 0 for number in range(8)})
    with share.Pool(2, "fork", tasks.die_once_at, (point, armed), heap=heap) as pool:
        futures = [pool.submit(tasks.count, counts, str(number)) for number in range(8)]
        died = [
            number
            for number, future in enumerate(futures)
            if isinstance(future.exception(PATIENCE_S), share.WorkerDied)
        ]
    # Not begun, it goes back into the line; told already, it is done.
    assert len(died) == (1 if point in ("begun", "run") else 0)
    assert armed["armed"] == 0
    assert [counts[str(number)] for number in range(8)] == [
        0 if point == "begun" and number in died else 1 for number in range(8)
    ]


def test_a_time_limit_ends_the_task_with_its_worker_and_no_other() -> None:
    heap = share.Heap(max_size=1 << 26)
    never, go = heap.share(share.Event()), heap.share(share.Event())
    with share.Pool(2, "fork", heap=heap) as pool:
        other = pool.submit(tasks.wait_for, go)
        limited = pool.limited(task_timeout=0.1)
        hangs = limited.submit(tasks.wait_for, never)
        with pytest.raises(TimeoutError, match=r"task 2, wait_for took longer than 0.1 s: its wor"):
            hangs.result(PATIENCE_S)
        assert limited.submit(tasks.square, 3).result(PATIENCE_S) == 9
        go.set()
        assert other.result(PATIENCE_S) != never


def test_a_task_of_a_task_that_dies_is_told_to_the_task() -> None:
    with share.Pool(1, "fork") as pool:
        error = pool.submit(nested_death, pool).result(PATIENCE_S)
    assert "was killed by SIGKILL while it ran" in error


def nested_death(pool: share.Pool) -> str:
    try:
        pool.submit(tasks.die).result()
    except share.WorkerDied as error:
        return str(error)
    return "nothing"


def test_a_worker_ends_when_the_process_of_its_pool_was_killed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if not parent:
        os.close(reader)
        pool = share.Pool(2, "fork")
        pool.submit(tasks.square, 1).result(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    os.waitpid(parent, 0)
    # Each worker has inherited the other end: this ends with the last of them.
    with os.fdopen(reader, "rb") as ended:
        assert ended.read() == b""


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_that_rests_ends_after_its_pool_however_it_was_started(method: str) -> None:
    code = """
import os, sys
from ungil import share

if __name__ == "__main__":
    pool = share.Pool(1, sys.argv[1])
    print(pool.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""
    assert _ends_after_its_pool([sys.executable, "-c", code, method])


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_leaves_the_tasks_of_a_pool_that_was_killed(method: str) -> None:
    # All of them would take an hour and a half.
    code = """
import os, sys, time
from ungil import share

if __name__ == "__main__":
    pool = share.Pool(1, sys.argv[1])
    first = pool.submit(os.getpid)
    for _ in range(100_000):
        pool.submit(time.sleep, 0.05)
    print(first.result(), flush=True)
    sys.stdin.read()
"""
    assert _ends_after_its_pool([sys.executable, "-c", code, method])


def _ends_after_its_pool(words: list[str]) -> bool:
    """Whether the worker ends whose number a program says that is killed then."""
    with subprocess.Popen(
        words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        worker = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
    ended, _, _ = select.select([worker], [], [], PATIENCE_S)
    os.close(worker)
    return bool(ended)


@pytest.mark.parametrize("retries", [0, 1000])
def test_kills_at_random_moments_leave_every_task_told_once(retries: int) -> None:
    account = pool_soak.soak(
        workers=4, tasks=4000, every_s=0.01, retries=retries, most_s=0.001, seed=retries
    )
    assert account.wrong == []
    assert account.done + account.died == 4000
    assert account.died == 0 or not retries
    assert account.kills


@pytest.mark.parametrize("part", ["tasks", "results", "state", "work", "bell"])
def test_a_pool_whose_heap_is_damaged_breaks_settles_its_futures_and_ends(part: str) -> None:
    heap = share.Heap(f"test.{os.getpid()}_damaged", max_size=1 << 22)
    try:
        pool = share.Pool(1, "fork", heap=heap)
        begun, go = heap.share(share.Event()), heap.share(share.Event())
        futures = [pool.submit(tasks.begin_and_wait, begun, go)]
        futures += [pool.submit(tasks.square, number) for number in range(3)]
        assert begun.wait(PATIENCE_S)
        line = pool._core.line  # pyright: ignore[reportPrivateUsage]
        damage(heap, getattr(line, part))
        go.set()
        if part in ("state", "work"):  # Nobody meets these before the end.
            pool.shutdown()
        for future in futures[1:]:
            with contextlib.suppress(BrokenProcessPool, RuntimeError):
                assert future.result(PATIENCE_S) in range(9)
        pool.shutdown()
        assert all(future.done() for future in futures)
        assert pool.worker_pids() == []
    finally:
        heap.unlink()


def damage(heap: share.Heap, part: share.deque[int]) -> None:
    """Makes an object of a named heap one of a kind that there is not."""
    _, handle = _native.send_handle(part)
    (at,) = struct.unpack_from("=Q", handle, 16)  # behind the number of the heap
    with Path(f"/dev/shm/ungil-heap-{os.geteuid()}-{heap.name}").open("r+b") as file:
        file.seek(at)
        file.write(b"\xee")
