"""A pool of processes runs tiny tasks, and says how long that took.

    pooled.py TASK WAY NUMBER WORKERS

TASK is `submit` (NUMBER tasks are submitted one by one, and then their results taken), `round
trip` (each is waited for before the next is submitted), `map` (NUMBER calls in chunks of 1,000),
`large chunks` (in four chunks a worker), `start` (the first result of a new pool), or `sums`
(NUMBER calls of 200 us of work each). Prints `wall_s`, the processor time of this process `cpu_s`,
and `number`.
"""

import json
import sys
import time
from typing import Any

CHUNK = 1_000


def same(number: int) -> int:
    """Almost nothing."""
    return number


def work(number: int) -> int:
    """Some 200 us on a machine of 2020."""
    return sum(range(10_000)) + number


def make(way: str, workers: int) -> Any:
    """A pool that has an executor's methods, but for mp.Pool's."""
    if way == "ungil":
        from ungil import share

        return share.Pool(workers, "fork")
    if way == "ProcessPoolExecutor":
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))
    if way == "mp.Pool":
        import multiprocessing

        return MpPool(multiprocessing.get_context("fork").Pool(workers))
    if way == "loky":
        import loky

        return loky.ProcessPoolExecutor(workers)
    if way == "joblib":
        return Joblib(workers)
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    return Ray(ray)


class MpPool:
    """multiprocessing.Pool, called as an executor is."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, fn: Any, *args: Any) -> Any:
        """A call whose outcome has `result`."""
        outcome = self._pool.apply_async(fn, args)
        outcome.result = outcome.get
        return outcome

    def map(self, fn: Any, items: Any, chunksize: int) -> Any:
        """All results."""
        return self._pool.map(fn, items, chunksize)

    def shutdown(self) -> None:
        """Its end."""
        self._pool.terminate()


class Joblib:
    """joblib, with its own backend of processes."""

    def __init__(self, workers: int) -> None:
        import joblib

        self._joblib = joblib
        self._workers = workers

    def map(self, fn: Any, items: Any, chunksize: int) -> Any:
        """All results."""
        parallel = self._joblib.Parallel(self._workers, batch_size=chunksize)
        return parallel(self._joblib.delayed(fn)(item) for item in items)

    def shutdown(self) -> None:
        """It keeps its workers for the next call."""


class Ray:
    """Ray, one task a call."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._remotes: dict[Any, Any] = {}

    def submit(self, fn: Any, *args: Any) -> Any:
        """A call whose outcome has `result`."""
        remote = self._remotes.get(fn) or self._remotes.setdefault(fn, self._ray.remote(fn))
        return RayOutcome(self._ray, remote.remote(*args))

    def shutdown(self) -> None:
        """Its end."""
        self._ray.shutdown()


class RayOutcome:
    """A reference with `result`."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray = ray
        self._reference = reference

    def result(self) -> Any:
        """The value."""
        return self._ray.get(self._reference)


def main() -> None:
    """Does it, and prints."""
    task, way, number, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    made = time.perf_counter()
    pool = make(way, workers)
    warm = [pool.submit(same, n) for n in range(workers)] if hasattr(pool, "submit") else []
    first = [outcome.result() for outcome in warm]
    started_s = time.perf_counter() - made
    assert first == list(range(len(first)))
    if hasattr(pool, "map"):
        list(pool.map(same, range(CHUNK), chunksize=CHUNK))
    begun, cpu = time.perf_counter(), time.process_time()
    if task == "submit":
        outcomes = [pool.submit(same, n) for n in range(number)]
        assert [outcome.result() for outcome in outcomes] == list(range(number))
    elif task == "round trip":
        assert [pool.submit(same, n).result() for n in range(number)] == list(range(number))
    elif task == "sums":
        outcomes = [pool.submit(work, n) for n in range(number)]
        assert len([outcome.result() for outcome in outcomes]) == number
    elif task != "start":
        chunk = CHUNK if task == "map" else -(-number // (4 * workers))
        assert sum(pool.map(same, range(number), chunksize=chunk)) == number * (number - 1) // 2
    wall_s = started_s if task == "start" else time.perf_counter() - begun
    print(json.dumps({"wall_s": wall_s, "cpu_s": time.process_time() - cpu, "number": number}))
    sys.stdout.flush()
    pool.shutdown()


if __name__ == "__main__":
    main()
