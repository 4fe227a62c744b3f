"""`share.Pool`: an executor whose tasks and results go through shared memory."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from ungil.share._heap import Heap
from ungil.share._pool import nested
from ungil.share._pool.core import Core
from ungil.share._pool.died import WorkerDied
from ungil.share._pool.line import Line
from ungil.share._pool.map import Progress, mapped
from ungil.share._pool.staff import Staff

__all__ = ["Pool", "PoolTasks", "WorkerDied"]

T = TypeVar("T")

# How long tasks that Ctrl-C has interrupted may take to clean up.
_GRACE_S = 2.0


class PoolTasks(Executor):
    """Submits tasks to a pool, under limits of their own: what `Pool.limited` returns."""

    def __init__(self, pool: Pool | None, core: Any, task_timeout: float, retries: int) -> None:
        """Not for users: `Pool.limited` makes it."""
        # Whoever has it keeps the pool.
        self._pool = pool
        self._core: Core = core
        self._limit = task_timeout
        self._retries = retries

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a worker call `fn(*args, **kwargs)`; return the future of that call.

        Function, arguments and result are pickled, except shared objects, which are the same
        objects in the worker. In a worker, it submits a task of a task.

        Raises RuntimeError after `shutdown`, BrokenProcessPool if workers cannot start, MemoryError
        if the heap is full. The future reports what cannot be pickled.
        """
        if not callable(fn):
            # In a task a number stands for a function that the workers have.
            raise TypeError(f"fn={fn!r} cannot be called")
        if self._core.is_foreign:
            return nested.submit(self._core.line, self._limit, self._retries, fn, args, kwargs)
        return self._core.send(fn, args, kwargs, self._limit, self._retries)

    def map(  # type: ignore[override]
        self,
        fn: Callable[..., T],
        /,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        ordered: bool = True,
        progress: Progress | None = None,
    ) -> Iterator[T]:
        """Return an iterator over the results of `fn` for the items of `iterables`.

        A task is `chunksize` calls. At most `buffersize` tasks are under way, or have results that
        nobody has taken: the iterables are read only that far, so they may be endless; with
        None all are submitted at once. With `ordered=False` results come as tasks end. After each
        result `progress(done, total)` is called, where total is None if the iterables have no
        length.

        The iterator raises what a call raised, and TimeoutError `timeout` seconds after this call;
        tasks that still wait are cancelled then.
        """
        return mapped(
            self.submit,
            fn,
            iterables,
            timeout=timeout,
            chunksize=chunksize,
            buffersize=buffersize,
            ordered=ordered,
            progress=progress,
        )

    def limited(self, *, task_timeout: float | None = None, retries: int = 0) -> PoolTasks:
        """Return an executor of the same workers whose tasks have these limits.

        A task that runs longer than `task_timeout` seconds is ended with its worker, and its future
        raises TimeoutError. If its worker dies, a task runs again up to `retries` times.
        """
        return PoolTasks(self._pool, self._core, *_limits(task_timeout, retries))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; submitted ones run to their end, except cancelled ones.

        With `wait` it returns when all workers have ended. Raises RuntimeError instead in a
        callback that a thread of the pool calls: that thread cannot wait for its own end.
        """
        core = self._core
        if core.is_foreign:
            return
        core.close()
        if cancel_futures:
            core.withdraw_all()
        if wait:
            core.staff.join()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        line: Line | None = getattr(self._core, "line", None)
        if line is None:
            raise TypeError("a pool on a cluster cannot be passed to its tasks")
        return nested.found, (line.token, self._limit, self._retries)


class Pool(PoolTasks):
    """Worker processes that run functions: a `concurrent.futures.Executor`.

        with share.Pool(8) as pool:
            for size in pool.map(os.path.getsize, paths, chunksize=100):
                ...

    Tasks and results go through a heap, `heap` or one of the pool's own. If a worker dies (killed,
    out of memory, crashed), only its own task fails, with `WorkerDied`, or runs again up to
    `retries` times; another worker takes its place.

    There are `max_workers`, by default one for each processor that this process may use. Each calls
    `initializer(*initargs)` first, and ends after `max_tasks_per_child` tasks. `mp_context` is a
    context of multiprocessing or the name of one: "fork", "spawn" or "forkserver". By default it is
    multiprocessing's own, and "spawn" with `max_tasks_per_child`. As there, forked workers start
    with the first task, others when they are needed.

    `task_timeout` and `retries` are those of `limited`, for all tasks. Ctrl-C in a `with` block
    interrupts the tasks that run and cancels the others. When the program ends, tasks are run to
    their end first.

    With `engine` the same calls go to a cluster: "dask", "ray", the address of one
    (`tcp://HOST:PORT`, `ray://HOST:PORT`) or a `distributed.Client`. Options for workers on this
    machine must then be left out. How often Dask runs the task of a dead worker again is set in
    Dask's own configuration.

    Raises ValueError or TypeError for impossible options, EngineError if no cluster answers.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: BaseContext | str | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        heap: Heap | None = None,
        task_timeout: float | None = None,
        retries: int = 0,
        engine: Any = None,
    ) -> None:
        limits = _limits(task_timeout, retries)
        if engine is not None:
            _of_this_machine(
                max_workers=max_workers,
                mp_context=mp_context,
                initializer=initializer,
                max_tasks_per_child=max_tasks_per_child,
                heap=heap,
            )
            from ungil.share._pool.cluster import cluster

            there: Any = cluster(engine)
            super().__init__(None, there, *limits)
            return
        size = len(os.sched_getaffinity(0)) if max_workers is None else max_workers
        if not isinstance(size, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"max_workers={size!r} is not a whole number")
        if size <= 0:
            raise ValueError(f"max_workers must be greater than 0, not {size}")
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be a callable, not {initializer!r}")
        if max_tasks_per_child is not None and max_tasks_per_child < 1:
            raise ValueError(f"max_tasks_per_child must be >= 1, not {max_tasks_per_child}")
        if mp_context is None:
            method = None if max_tasks_per_child is None else "spawn"
            mp_context = multiprocessing.get_context(method)
        elif isinstance(mp_context, str):
            mp_context = multiprocessing.get_context(mp_context)
        core = Core(Heap() if heap is None else heap)
        core.staff = Staff(
            core,
            mp_context,
            size,
            initializer=initializer,
            initargs=initargs,
            most_tasks=max_tasks_per_child,
        )
        super().__init__(self, core, *limits)
        # Not itself: nobody would ever let go of it.
        self._pool = None
        _cores.add(weakref.ref(core, _cores.discard))
        weakref.finalize(self, core.close).atexit = False

    def limited(self, *, task_timeout: float | None = None, retries: int = 0) -> PoolTasks:
        """Return an executor of the same workers whose tasks have these limits.

        A task that runs longer than `task_timeout` seconds is ended with its worker, and its future
        raises TimeoutError. If its worker dies, a task runs again up to `retries` times.
        """
        return PoolTasks(self, self._core, *_limits(task_timeout, retries))

    @property
    def heap(self) -> Heap:
        """The heap that tasks and results go through."""
        return self._core.heap

    @property
    def max_workers(self) -> int:
        """How many workers there are at most, without those added for tasks that wait for tasks."""
        return self._core.staff.size

    def worker_pids(self) -> list[int]:
        """Return the process ids of the current workers."""
        return [*self._core.staff.processes]

    def terminate_workers(self) -> None:
        """Send SIGTERM to all workers, which may clean up: running and waiting tasks fail.

        They raise BrokenProcessPool, and the pool takes no more. This does not wait for the
        workers; `shutdown` does, and `kill_workers` ends those that go on.
        """
        if not self._core.is_foreign:
            self._core.close()
            self._core.staff.is_gentle = True
            self._core.break_off("terminate_workers() ended the workers")

    def kill_workers(self) -> None:
        """End everything at once: running and waiting tasks fail.

        They raise BrokenProcessPool, and the pool takes no more.
        """
        if not self._core.is_foreign:
            self._core.close()
            self._core.break_off("kill_workers() killed the workers")
            self._core.staff.kill()
            self._core.staff.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            return self.shutdown()
        if self._core.is_foreign:
            return None
        # At a terminal the tasks were interrupted with this; also others can clean up.
        self.shutdown(wait=False, cancel_futures=True)
        staff = self._core.staff
        staff.interrupt()
        if not staff.join(_GRACE_S):
            self.kill_workers()
        return None


def _of_this_machine(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is for workers on this machine: leave it out with an engine"
            )


def _limits(task_timeout: float | None, retries: int) -> tuple[float, int]:
    if task_timeout is not None and not task_timeout > 0:
        raise ValueError(f"task_timeout must be more than 0 seconds, not {task_timeout}")
    if not isinstance(retries, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"retries={retries!r} is not a whole number")
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, not {retries}")
    # None, and also without end: as it is written into a task.
    return 0.0 if task_timeout is None or task_timeout == math.inf else task_timeout, retries


# Not a WeakSet: each page that a forked child touches is copied for it first.
_cores: set[weakref.ref[Core]] = set()


def _all() -> list[Core]:
    """Those of the pools of this process, and of the ones that it was forked from."""
    return [core for made in [*_cores] if (core := made()) is not None]


def _end_all() -> None:
    """At the end of the program: tasks run to their end, as with concurrent.futures."""
    for core in _all():
        core.is_exiting = True
        if not core.is_foreign:
            core.close()
    for core in _all():
        if not core.is_foreign:
            core.staff.join()


def _disown_all() -> None:
    """In a forked child: the pools are its parent's."""
    for core in _all():
        core.disown()


# Before the threads of the program are waited for, those of the pools included; as ProcessPool does
# it (concurrent/futures/process.py).
threading._register_atexit(_end_all)  # type: ignore[attr-defined]  # pyright: ignore
os.register_at_fork(after_in_child=_disown_all)
