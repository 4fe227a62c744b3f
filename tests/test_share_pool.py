"""`share.Pool` does what an executor does, and what its own options say."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import share_pool_tasks as tasks
from suite import PATIENCE_S

from ungil import share
from ungil.errors import NotCarried

METHODS = ("fork", "spawn", "forkserver")


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def pool() -> Generator[share.Pool]:
    with share.Pool(2, "fork") as made:
        yield made


def test_tasks_run_however_the_workers_are_started(method: str) -> None:
    with share.Pool(2, method) as pool:
        assert pool.submit(tasks.square, 7).result(PATIENCE_S) == 49
        assert [*pool.map(tasks.square, range(5))] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize(
    "value",
    [
        None,
        1 << 100,
        float("nan"),
        "text" * 10_000,
        b"bytes" * 10_000,
        "\udcff" * 20_000,
        [1, [2]],
        {"a": {1, 2}},
        deque([1], maxlen=3),
        (1, [2]),
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arguments_and_results_are_copies_of_the_same_type(pool: share.Pool, value: Any) -> None:
    got = pool.submit(tasks.same, value).result(PATIENCE_S)
    assert type(got) is type(value)
    assert got == value or value != value
    args, kwargs = pool.submit(tasks.everything, value, "x" * 20_000, key=value).result(PATIENCE_S)
    assert [type(item) for item in args] == [type(value), str]
    assert type(kwargs["key"]) is type(value)


def test_shared_objects_are_the_same_ones_in_workers(method: str) -> None:
    heap = share.Heap(max_size=1 << 26)
    counts = heap.share({"a": 0})
    with share.Pool(2, method, heap=heap) as pool:
        assert pool.submit(tasks.same, counts).result(PATIENCE_S) is counts
        for future in [pool.submit(tasks.count, counts, "a") for _ in range(10)]:
            future.result(PATIENCE_S)
    assert counts["a"] == 10


def test_shared_objects_of_another_heap_are_the_same_ones_too(pool: share.Pool) -> None:
    other = share.Heap(max_size=1 << 26).share([1])
    assert pool.submit(tasks.same, other).result(PATIENCE_S) is other
    assert pool.submit(tasks.same, [other]).result(PATIENCE_S)[0] is other


def test_a_function_of_the_program_itself_goes_by_cloudpickle(pool: share.Pool) -> None:
    more = 5

    def added(number: int) -> int:
        return number + more

    assert pool.submit(added, 2).result(PATIENCE_S) == 7


def test_functions_among_the_arguments_go_by_cloudpickle_too(pool: share.Pool) -> None:
    more = 5

    def added(number: int) -> int:
        return number + more

    assert pool.submit(tasks.same, added).result(PATIENCE_S)(2) == 7
    assert [*pool.map(added, range(4), chunksize=2)] == [5, 6, 7, 8]


@pytest.mark.parametrize("known", [True, False])
def test_an_argument_that_pickle_refuses_becomes_nothing_else(
    pool: share.Pool, known: bool
) -> None:
    def same(value: Any) -> Any:
        return value

    function = tasks.same if known else same
    with Path(__file__).open(encoding="utf-8") as file:
        for refused in (file, memoryview(b"a")):
            for given in (refused, [refused]):
                with pytest.raises(TypeError, match="cannot pickle"):
                    pool.submit(function, given).result(PATIENCE_S)


def test_what_a_task_raises_is_raised_with_its_traceback(pool: share.Pool) -> None:
    with pytest.raises(LookupError, match="why") as caught:
        pool.submit(tasks.fail, "why").result(PATIENCE_S)
    assert "raise LookupError(message)" in str(caught.value.__cause__)
    with pytest.raises(SystemExit):
        pool.submit(tasks.exit_, 3).result(PATIENCE_S)


def test_what_cannot_be_carried_fails_its_own_task_alone(pool: share.Pool) -> None:
    with pytest.raises((TypeError, pickle.PicklingError), match=r"pickle"):
        pool.submit(tasks.same, threading.Lock()).result(PATIENCE_S)
    with pytest.raises((TypeError, pickle.PicklingError), match=r"pickle"):
        pool.submit(tasks.cannot_be_pickled).result(PATIENCE_S)
    with pytest.raises(LookupError, match="unreadable"):
        pool.submit(tasks.same, tasks.Unreadable()).result(PATIENCE_S)
    with pytest.raises(LookupError, match="unreadable"):
        pool.submit(tasks.unreadable).result(PATIENCE_S)
    assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_an_exception_that_cannot_be_unpickled_is_quoted_with_its_traceback(
    pool: share.Pool,
) -> None:
    with pytest.raises(NotCarried) as caught:
        pool.submit(tasks.fail_wordily).result(PATIENCE_S)
    assert str(caught.value).startswith(
        "Wordy: a leak in the roof (which cannot be pickled: TypeError: "
    )
    assert "in fail_wordily" in str(caught.value.__cause__)
    assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_a_task_in_the_line_can_be_cancelled_and_one_that_runs_cannot() -> None:
    heap = share.Heap(max_size=1 << 26)
    begun, go = heap.share(share.Event()), heap.share(share.Event())
    with share.Pool(1, "fork", heap=heap) as pool:
        runs = pool.submit(tasks.begin_and_wait, begun, go)
        begun.wait()
        waits = [pool.submit(tasks.square, number) for number in range(3)]
        assert runs.running()
        assert not runs.cancel()
        assert waits[1].cancel()
        assert waits[1].cancelled()
        told: list[Any] = []
        waits[1].add_done_callback(told.append)
        assert told == [waits[1]]
        go.set()
        assert [waits[0].result(PATIENCE_S), waits[2].result(PATIENCE_S)] == [0, 4]
        with pytest.raises(CancelledError):
            waits[1].result()


def test_waiting_for_several_and_for_a_time_works_as_with_other_futures(pool: share.Pool) -> None:
    go = pool.heap.share(share.Event())
    late = pool.submit(tasks.wait_for, go)
    quick = pool.submit(tasks.square, 2)
    assert wait([late, quick], PATIENCE_S, FIRST_COMPLETED).done == {quick}
    with pytest.raises(TimeoutError):
        late.result(0.01)
    with pytest.raises(TimeoutError):
        late.exception(0)
    go.set()
    assert set(as_completed([late, quick], PATIENCE_S)) == {late, quick}


def test_threads_that_wait_for_tasks_all_get_their_own(pool: share.Pool) -> None:
    got: list[int] = []

    def ask(number: int) -> None:
        got.extend(pool.submit(tasks.square, number).result(PATIENCE_S) for _ in range(50))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(number * number for number in range(8) for _ in range(50))


def test_callbacks_are_called_though_nobody_waits(pool: share.Pool) -> None:
    pool.submit(tasks.square, 1).result(PATIENCE_S)
    told: list[int] = []
    done = threading.Event()

    def tell(future: Any) -> None:
        told.append(future.result())
        if len(told) == 20:
            done.set()

    for number in range(20):
        pool.submit(tasks.square, number).add_done_callback(tell)
    assert done.wait(PATIENCE_S)
    assert sorted(told) == [number * number for number in range(20)]


def test_an_event_loop_runs_tasks_in_it(pool: share.Pool) -> None:
    async def squares() -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(loop.run_in_executor(pool, tasks.square, number) for number in range(5))
        )

    assert asyncio.run(squares()) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("chunksize", [1, 3, 100])
@pytest.mark.parametrize("ordered", [True, False])
def test_map_gives_all_results_in_every_way(
    pool: share.Pool, chunksize: int, ordered: bool
) -> None:
    for numbers in (range(20), [*range(20)], iter(range(20))):
        results = pool.map(
            tasks.square, numbers, chunksize=chunksize, ordered=ordered, buffersize=2
        )
        squares = [number * number for number in range(20)]
        assert (list(results) if ordered else sorted(results)) == squares
    pairs = pool.map(pow, range(5), [2, 3], chunksize=chunksize, ordered=ordered)
    assert sorted(pairs) == [0, 1]


def test_map_reads_no_further_than_its_buffer(pool: share.Pool) -> None:
    read: list[int] = []

    def endless() -> Iterator[int]:
        for number in count():
            read.append(number)
            yield number

    results = pool.map(tasks.square, endless(), buffersize=3)
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    assert len(read) == 3 + 5
    del results
    with pytest.raises(ValueError, match="buffersize must be None or > 0, not 0"):
        pool.map(tasks.square, [1], buffersize=0)
    wrong: Any = "2"
    with pytest.raises(TypeError, match="buffersize must be an integer or None, not '2'"):
        pool.map(tasks.square, [1], buffersize=wrong)
    with pytest.raises(ValueError, match="chunksize must be >= 1, not 0"):
        pool.map(tasks.square, [1], chunksize=0)


def test_a_chunk_with_a_call_that_raises_stopiteration_fails(pool: share.Pool) -> None:
    chunks = pool.map(tasks.stop_at, range(6), chunksize=3)
    with pytest.raises(RuntimeError, match="the function raised StopIteration for 1"):
        list(chunks)
    chunks = pool.map(tasks.stop_at, range(6), [5] * 6, chunksize=6)
    with pytest.raises(RuntimeError, match=r"the function raised StopIteration for \(5, 5\)"):
        list(chunks)


def test_map_without_order_gives_first_what_ends_first() -> None:
    heap = share.Heap(max_size=1 << 26)
    go, gone = heap.share(share.Event()), heap.share(share.Event())
    gone.set()
    with share.Pool(2, "fork", heap=heap) as pool:
        results = pool.map(tasks.wait_for, [go, gone, gone], ordered=False)
        assert next(results) == next(results)
        go.set()
        next(results)


def test_map_tells_how_far_it_is(pool: share.Pool) -> None:
    told: list[tuple[int, int | None]] = []

    def tell(done: int, total: int | None) -> None:
        told.append((done, total))

    args: dict[str, Any] = {"progress": tell}
    assert [*pool.map(tasks.square, [1, 2], chunksize=2, **args)] == [1, 4]
    assert [*pool.map(tasks.square, iter([1]), **args)] == [1]
    assert told == [(1, 2), (2, 2), (1, 1)]


def test_tasks_submit_tasks_deeper_than_there_are_workers(method: str) -> None:
    with share.Pool(1, method) as pool:
        assert pool.submit(tasks.fibonacci, pool, 5).result(PATIENCE_S) == 5
        assert "LookupError('inside')" in pool.submit(tasks.nested_failure, pool).result(PATIENCE_S)


def test_a_pool_is_refused_in_a_process_that_is_not_its_worker(pool: share.Pool) -> None:
    with share.Pool(1, "fork") as other:
        future = other.submit(tasks.fibonacci, pool, 3)
        with pytest.raises(RuntimeError, match="only the process that made a pool and its workers"):
            future.result(PATIENCE_S)


def test_workers_are_initialised_and_share_what_they_are_given(method: str) -> None:
    heap = share.Heap(max_size=1 << 26)
    shared = heap.share({"workers": 0})
    with share.Pool(1, method, tasks.initialise, (shared, "local"), heap=heap) as pool:
        assert pool.submit(tasks.initialised).result(PATIENCE_S) == ["local"]
    assert shared["workers"] == 1


def test_a_worker_ends_after_its_number_of_tasks() -> None:
    with share.Pool(1, "fork", max_tasks_per_child=2) as pool:
        pids = [pool.submit(tasks.pid).result(PATIENCE_S) for _ in range(6)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 2]


def test_a_pool_without_a_method_and_with_a_number_of_tasks_spawns() -> None:
    pool = share.Pool(1, max_tasks_per_child=2)
    assert pool._core.staff.context.get_start_method() == "spawn"  # pyright: ignore
    pool.shutdown()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_workers": 0}, "max_workers must be greater than 0, not 0"),
        ({"initializer": 3}, "initializer must be a callable, not 3"),
        ({"max_tasks_per_child": 0}, "max_tasks_per_child must be >= 1, not 0"),
        ({"task_timeout": 0}, "task_timeout must be more than 0 seconds, not 0"),
        ({"retries": -1}, "retries must be 0 or more, not -1"),
        ({"mp_context": "thread"}, "cannot find context for 'thread'"),
        ({"engine": "slurm"}, "engine must be .* not 'slurm'"),
        ({"engine": "dask", "max_workers": 3}, "max_workers=3 is for workers on this machine"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        share.Pool(**options)


def test_a_full_heap_is_a_memory_error_and_costs_nothing_else() -> None:
    heap = share.Heap(max_size=1 << 24)
    go = heap.share(share.Event())
    with share.Pool(1, "fork", heap=heap) as pool:
        waits = pool.submit(tasks.wait_for, go)
        big = b"x" * (1 << 22)
        with pytest.raises(MemoryError):
            _ = [pool.submit(len, big) for _ in range(10)]
        go.set()
        assert isinstance(waits.result(PATIENCE_S), int)
        with pytest.raises(MemoryError):
            pool.submit(bytes, 1 << 25).result(PATIENCE_S)
        assert pool.submit(tasks.square, 3).result(PATIENCE_S) == 9


def test_a_failed_initialiser_breaks_the_pool_and_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with share.Pool(1, "fork", tasks.fail_to_start) as pool:
        with pytest.raises(BrokenProcessPool, match="LookupError: no start"):
            pool.submit(tasks.square, 1).result(PATIENCE_S)
        with pytest.raises(BrokenProcessPool, match="LookupError: no start"):
            pool.submit(tasks.square, 1)


def test_workers_that_never_begin_break_the_pool_rather_than_start_for_ever() -> None:
    with share.Pool(1, "fork", tasks.leave_at_start) as pool:
        future = pool.submit(tasks.square, 1)
        with pytest.raises(BrokenProcessPool, match="the last one ended with status 7"):
            future.result(PATIENCE_S)
