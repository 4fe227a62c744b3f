"""A backend for joblib: what `joblib.Parallel` runs goes to a `share.Pool`.

    from ungil.share.joblib import register

    register()
    with joblib.parallel_config("ungil", n_jobs=8):
        joblib.Parallel()(joblib.delayed(work)(item) for item in items)

It needs the package joblib, and is imported only if it is used.
"""

# What joblib says of its types is little.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import joblib
from joblib.parallel import AutoBatchingMixin, ParallelBackendBase

from ungil.share._pool.pool import Pool

__all__ = ["UngilBackend", "register"]


# Those of a pool that joblib can pass on.
_OPTIONS = {
    *("mp_context", "initializer", "initargs", "max_tasks_per_child"),
    *("heap", "task_timeout", "retries", "engine"),
}


class UngilBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # pyright: ignore
    """The backend: a pool for each `Parallel`, or for its `with` block.

    Further arguments of `parallel_config` go to `share.Pool`: `heap`, `mp_context`, `retries`,
    `task_timeout`, `initializer` and the others.
    """

    supports_retrieve_callback = True
    """Results come by callbacks; this also gives generators and timeouts."""
    uses_threads = False
    """Its workers are processes."""
    supports_sharedmem = False
    """Arguments are copied, but for shared objects."""
    backend_kwargs: dict[str, Any]
    """Further arguments of `parallel_config`; joblib has it since 1.5."""
    _pool: Pool | None = None
    _made: dict[str, Any]

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many workers there are: -1 means one for each processor, -2 one less."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if n_jobs < 0:
            return max(1, len(os.sched_getaffinity(0)) + 1 + n_jobs)
        return n_jobs

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        prefer: Any = None,
        require: Any = None,
        **options: Any,
    ) -> int:
        """Make the pool, and return how many workers it has."""
        self.parallel = parallel
        number = self.effective_n_jobs(n_jobs)
        # joblib adds options of its own, about memory that it maps for its other backends.
        given = {name: value for name, value in options.items() if name in _OPTIONS}
        # Before joblib 1.5 the options of a backend's own were not kept.
        self._made = {**getattr(self, "backend_kwargs", {}), **given}
        if self._made.get("engine") is None:
            # A cluster has as many workers as it has.
            self._made["max_workers"] = number
        self._pool = Pool(**self._made)
        return number

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Future[Any]:
        """Have a worker call a function."""
        assert self._pool is not None, (
            "the backend was not configured: joblib does that before it submits"
        )
        future = self._pool.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def apply_async(self, func: Callable[[], Any], callback: Any = None) -> Future[Any]:
        """Have a worker call a function; how joblib before 1.5 calls `submit`."""
        return self.submit(func, callback)

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return what the function returned, or raise what it raised."""
        return out.result()

    def terminate(self) -> None:
        """End the pool."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End what runs, and make a new pool if there is more to come."""
        if self._pool is not None:
            self._pool.kill_workers()
            self._pool = Pool(**self._made) if ensure_ready else None


def register(name: str = "ungil", *, make_default: bool = False) -> None:
    """Register the backend with joblib."""
    joblib.register_parallel_backend(name, UngilBackend, make_default=make_default)
