"""`share.Pool`: an executor whose tasks and results go through shared memory."""

from __future__ import annotations

import multiprocessing
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, TypeVar

from ungil.share._heap import Heap
from ungil.share._pool_core import Core
from ungil.share._pool_future import Future
from ungil.share._pool_staff import Staff

T = TypeVar("T")

_staffs: weakref.WeakSet[Staff] = weakref.WeakSet()


class Pool(Executor):
    """Worker processes that run functions: a `concurrent.futures.Executor`."""

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        heap: Heap | None = None,
        task_timeout: float | None = None,
        retries: int = 0,
    ) -> None:
        size = max_workers if max_workers is not None else len(os.sched_getaffinity(0))
        if size <= 0:
            raise ValueError(f"max_workers must be greater than 0, and not {size}")
        context: Any = mp_context or multiprocessing.get_context()
        core = Core(heap or Heap())
        self._core = core
        core.staff = self._staff = Staff(
            core,
            context,
            size,
            initializer=initializer,
            initargs=initargs,
            most_tasks=max_tasks_per_child,
        )
        self._limit = task_timeout or 0.0
        self._retries = retries
        _staffs.add(self._staff)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self._core.send(fn, args, kwargs, self._limit, self._retries)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._core.close()
        if cancel_futures:
            self._core.withdraw_all()
        if wait:
            for thread in self._staff.threads:
                thread.join()
