"""A pool of processes runs tiny tasks, and says how long that took.

    pooled.py TASK WAY NUMBER WORKERS

TASK is `submit` (NUMBER tasks are submitted one by one, and then their results taken), `round
trip` (each is waited for before the next is submitted), `map` (NUMBER calls in chunks of 1,000),
`large chunks` (in four chunks a worker), `start` (from before the pool is made, with what it needs
imported, until all of its workers run a task at the same time, and have answered), `start, spawn`
(the same with new interpreters for workers; all others are forked), or `sums` (NUMBER calls of 200
us of work each). Prints `wall_s`, the processor time of this process `cpu_s`, and `number`.
"""

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHUNK = 1_000


def same(number: int) -> int:
    """Almost nothing."""
    return number


def work(number: int) -> int:
    """Some 200 us on a machine of 2020."""
    return sum(range(10_000)) + number


def meet(path: str) -> int:
    """Comes to a place, and stays until it is let go."""
    with socket.socket(socket.AF_UNIX) as here:
        here.connect(path)
        return len(here.recv(1))


def maker(way: str, method: str) -> Callable[[int], Any]:
    """What makes a pool that has an executor's methods, but for mp.Pool's; imported already."""
    if way == "ungil":
        from ungil.share import Pool

        return lambda workers: Pool(workers, method)
    if way == "ProcessPoolExecutor":
        import multiprocessing
        from concurrent.futures.process import ProcessPoolExecutor

        context = multiprocessing.get_context(method)
        return lambda workers: ProcessPoolExecutor(workers, mp_context=context)
    if way == "mp.Pool":
        import multiprocessing
        import multiprocessing.pool

        context = multiprocessing.get_context(method)
        return lambda workers: MpPool(context.Pool(workers))
    if way == "loky":
        import loky

        return loky.ProcessPoolExecutor
    if way == "joblib":
        return Joblib
    return by_ray


def by_ray(workers: int) -> "Ray":
    """A cluster of this machine."""
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


def start(way: str, workers: int, method: str) -> tuple[float, float]:
    """Until all workers of a new pool run tasks at the same time, and have answered.

    Seconds, and those of this process on a processor.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as place:
        path = str(Path(folder) / "place")
        place.bind(path)
        place.listen(workers)
        make = maker(way, method)
        begun, cpu = time.perf_counter(), time.process_time()
        pool = make(workers)
        outcomes = [pool.submit(meet, path) for _ in range(workers)]
        # Only when all are there one is let go, so that no worker can run the task of another.
        there = [place.accept()[0] for _ in range(workers)]
        for one in there:
            one.send(b"x")
            one.close()
        assert [outcome.result() for outcome in outcomes] == [1] * workers
        took = time.perf_counter() - begun, time.process_time() - cpu
        pool.shutdown()
    return took


def main() -> None:
    """Does it, and prints."""
    task, way, number, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if task.startswith("start"):
        say(*start(way, workers, "spawn" if task.endswith("spawn") else "fork"), number)
        return
    pool = maker(way, "fork")(workers)
    warm = [pool.submit(same, n) for n in range(workers)] if hasattr(pool, "submit") else []
    assert [outcome.result() for outcome in warm] == list(range(len(warm)))
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
    else:
        chunk = CHUNK if task == "map" else -(-number // (4 * workers))
        assert sum(pool.map(same, range(number), chunksize=chunk)) == number * (number - 1) // 2
    say(time.perf_counter() - begun, time.process_time() - cpu, number)
    pool.shutdown()


def say(wall_s: float, cpu_s: float, number: int) -> None:
    """What came out."""
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "number": number}), flush=True)


if __name__ == "__main__":
    main()
