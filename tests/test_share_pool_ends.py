"""How a `share.Pool` ends: by shutdown, with its program, by Ctrl-C, and when nobody has it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S, run_python

from ungil import share

METHODS = ("fork", "spawn", "forkserver")
TESTS = os.path.dirname(__file__)  # noqa: PTH120


def program(body: str) -> str:
    return f"""\
import sys
sys.path.insert(0, {TESTS!r})
import share_pool_tasks as tasks
from ungil import share

if __name__ == "__main__":
    {body.replace(chr(10), chr(10) + "    ")}
"""


def run(tmp_path: Any, body: str) -> subprocess.CompletedProcess[str]:
    """Runs a program from a file, which spawned workers import again."""
    file = tmp_path / "program.py"
    file.write_text(program(body))
    return run_python(file)


def test_shutdown_lets_tasks_end_and_takes_no_more() -> None:
    pool = share.Pool(2, "fork")
    futures = [pool.submit(tasks.square, number) for number in range(100)]
    pool.shutdown()
    assert [future.result(0) for future in futures] == [number**2 for number in range(100)]
    assert pool.worker_pids() == []
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.submit(tasks.square, 1)
    pool.shutdown()


def test_shutdown_can_cancel_what_has_not_begun() -> None:
    heap = share.Heap(max_size=1 << 26)
    begun, go = heap.share(share.Event()), heap.share(share.Event())
    pool = share.Pool(1, "fork", heap=heap)
    runs = pool.submit(tasks.begin_and_wait, begun, go)
    waits = [pool.submit(tasks.square, number) for number in range(5)]
    begun.wait()
    pool.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in waits)
    go.set()
    pool.shutdown()
    assert runs.result(0) is None


def test_nested_tasks_are_taken_until_the_last_task_has_ended() -> None:
    pool = share.Pool(1, "fork")
    future = pool.submit(tasks.fibonacci, pool, 4)
    pool.shutdown()
    assert future.result(0) == 3


def test_killed_workers_fail_what_they_ran() -> None:
    pool = share.Pool(1, "fork")
    go = pool.heap.share(share.Event())
    future = pool.submit(tasks.wait_for, go)
    pool.kill_workers()
    with pytest.raises(RuntimeError, match=r"kill_workers\(\)"):
        future.result(0)


def test_terminated_workers_clean_up_and_their_tasks_fail() -> None:
    pool = share.Pool(1, "fork", retries=3)
    begun, cleaned = pool.heap.share(share.Event()), pool.heap.share(share.Event())
    future = pool.submit(tasks.clean_up_when_terminated, begun, cleaned)
    assert begun.wait(PATIENCE_S)
    pool.terminate_workers()
    with pytest.raises(RuntimeError, match=r"terminate_workers\(\)"):
        future.result(0)
    pool.shutdown()
    assert cleaned.is_set()


def test_workers_that_take_no_notice_of_their_termination_can_be_killed() -> None:
    pool = share.Pool(1, "fork")
    begun = pool.heap.share(share.Event())
    pool.submit(tasks.take_no_notice, begun)
    assert begun.wait(PATIENCE_S)
    pool.terminate_workers()
    pool.kill_workers()
    assert not pool.worker_pids()


def test_a_pool_that_nobody_has_ends_and_its_results_come() -> None:
    before = threading.active_count()
    pool = share.Pool(2, "fork")
    results = pool.map(tasks.square, range(10))
    warden = pool._core.staff.warden  # pyright: ignore[reportPrivateUsage]
    assert warden is not None
    del pool
    gc.collect()
    warden.join(PATIENCE_S)
    assert [*results] == [number**2 for number in range(10)]
    assert threading.active_count() == before


def test_a_pool_without_a_task_starts_nothing() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with share.Pool(4, "fork") as pool:
        assert pool.worker_pids() == []
    del pool
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


@pytest.mark.parametrize("method", METHODS)
def test_a_program_that_ends_runs_its_tasks_first(tmp_path: Any, method: str) -> None:
    done = run(
        tmp_path,
        f'pool = share.Pool(2, "{method}")\npool.submit(tasks.nap_and_say, 0.2, "apple")',
    )
    assert (done.stdout, done.stderr, done.returncode) == ("apple\n", "", 0)


def test_a_program_that_ends_takes_no_more_tasks(tmp_path: Any) -> None:
    done = run(
        tmp_path,
        """\
import atexit
pool = share.Pool(1, "fork")
def last():
    try:
        pool.submit(tasks.square, 1)
    except RuntimeError as error:
        print(error)
atexit.register(last)
pool.submit(tasks.square, 1).result()""",
    )
    assert done.stdout == "cannot schedule new futures after interpreter shutdown\n"
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_interrupts_tasks_which_clean_up_and_say_nothing(tmp_path: Any, method: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        program(f"""\
heap = share.Heap(max_size=1 << 26)
begun = [heap.share(share.Event()) for _ in range(2)]
cleaned = heap.share({{"cleaned": 0}})
try:
    with share.Pool(3, "{method}", heap=heap) as pool:
        for event in begun:
            pool.submit(tasks.clean_up, event, cleaned)
        for event in begun:
            event.wait()
        print("begun", flush=True)
        import time
        while True:  # One long sleep might begin just after the signal.
            time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", cleaned["cleaned"], flush=True)""")
    )
    process = subprocess.Popen(
        [sys.executable, file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)  # As a terminal does: to the workers, too.
        assert process.stdout.read() == "interrupted 2\n"
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_program_without_a_main_guard_is_told_what_is_missing(tmp_path: Any) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "from ungil import share\n"
        'with share.Pool(1, "spawn") as pool:\n'
        "    pool.submit(abs, 1).result()\n"
    )
    done = run_python(file)
    assert 'starts processes does so below `if __name__ == "__main__":`' in done.stderr
    assert done.returncode == 1


def test_a_fork_of_the_program_does_not_end_its_pool() -> None:
    with share.Pool(1, "fork") as pool:
        assert pool.submit(tasks.square, 2).result(PATIENCE_S) == 4
        child = os.fork()
        if not child:
            pool.shutdown()
            os._exit(0)
        os.waitpid(child, 0)
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9
