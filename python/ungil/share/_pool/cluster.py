"""`engine` of a pool: the same calls, run by a Dask or a Ray cluster.

A cluster has schedulers and workers of its own. What a death costs, and how often a task runs again
by itself, is as it has been told there.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from importlib import import_module
from typing import Any

from ungil.errors import EngineError
from ungil.share._heap import Heap
from ungil.share._pool.died import WorkerDied


class Cluster:
    """What a pool asks of those who run its tasks, upon a cluster's client."""

    is_foreign = False
    is_exiting = False

    def __init__(self, size: int) -> None:
        self.size = size
        self.staff = self
        self.processes: dict[int, Any] = {}
        """None that this process knows."""
        self._under_way: set[Future[Any]] = set()
        self._is_closed = False

    def start(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], retries: int) -> Any:
        """Submit to the cluster, and return the future that it gives."""
        raise NotImplementedError

    def stop(self, inner: Any) -> None:
        """Cancel in the cluster."""
        raise NotImplementedError

    def told(self, error: BaseException) -> BaseException:
        """Return what a task raised, or why it has not ended."""
        raise NotImplementedError

    def leave(self) -> None:
        """Leave the cluster, if it was joined here."""

    @property
    def heap(self) -> Heap:
        """Raises EngineError: memory is of one machine."""
        raise EngineError("the tasks of a cluster do not go through a heap")

    def send(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], limit: float, retries: int
    ) -> Future[Any]:
        """Have the cluster run a task."""
        if self._is_closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if limit:
            raise ValueError(
                f"task_timeout={limit:g} is for workers on this machine: it cannot end those of a "
                "cluster"
            )
        future: Future[Any] = Future()
        inner = self.start(fn, args, kwargs, retries)
        self._under_way.add(future)

        def ended(inner: Any) -> None:
            try:
                self._settle(future, inner)
            finally:
                # Not before: `join` waits for what is under way.
                self._under_way.discard(future)

        def cancelled(future: Future[Any]) -> None:
            if future.cancelled():
                self.stop(inner)

        inner.add_done_callback(ended)
        future.add_done_callback(cancelled)
        return future

    def _settle(self, future: Future[Any], inner: Any) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            error = inner.exception()
        except (CancelledError, Exception) as why:
            error = why
        if error is None:
            future.set_result(inner.result())
        else:
            future.set_exception(self.told(error))

    def close(self) -> None:
        """Take no more tasks."""
        self._is_closed = True

    def withdraw_all(self) -> None:
        """Cancel what can be cancelled."""
        for future in [*self._under_way]:
            future.cancel()

    def break_off(self, _why: str) -> None:
        """Cancel everything."""
        self.close()
        self.withdraw_all()

    def interrupt(self) -> None:
        """Cancel everything."""
        self.withdraw_all()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the tasks, and leave the cluster."""
        left = wait([*self._under_way], timeout).not_done
        if not left:
            self.leave()
        return not left


class Dask(Cluster):
    """A Dask cluster."""

    def __init__(self, engine: Any) -> None:
        distributed = _imported("distributed", "dask")
        self._is_own = not isinstance(engine, distributed.Client)
        self._client: Any = engine
        if self._is_own:
            address = None if engine == "dask" else engine
            try:
                # Without an address: the configured scheduler, else a cluster on this machine.
                self._client = distributed.Client(address, set_as_default=False)
            except OSError as error:
                raise EngineError(f"no dask scheduler answers at {address}: {error}") from error
        self._killed: type[BaseException] = import_module("distributed.scheduler").KilledWorker
        self._executor: Any = self._client.get_executor(pure=False)
        super().__init__(max(1, sum(self._client.nthreads().values())))

    def start(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], retries: int) -> Any:
        """Submit to the cluster. How often a killed task runs again, its configuration says."""
        # As one argument: dask takes keywords of a call for options of its own.
        return self._executor.submit(partial(fn, *args, **kwargs))

    def stop(self, inner: Any) -> None:
        """Cancel in the cluster."""
        inner.cancel()

    def told(self, error: BaseException) -> BaseException:
        """Return what a task raised, or why it has not ended."""
        return WorkerDied(f"a dask worker died: {error}") if type(error) is self._killed else error

    def leave(self) -> None:
        """Leave the cluster, if it was joined here."""
        self._executor.shutdown(wait=False)
        if self._is_own:
            self._client.close()


class Ray(Cluster):
    """A Ray cluster."""

    def __init__(self, engine: str) -> None:
        self._ray: Any = _imported("ray", "ray")
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            address = None if engine == "ray" else engine
            try:
                # Without an address: that of RAY_ADDRESS, else a cluster on this machine.
                self._ray.init(address, log_to_driver=True)
            except (ConnectionError, ValueError) as error:
                raise EngineError(f"no ray cluster answers at {address}: {error}") from error
        self._remote: Any = self._ray.remote(_call)
        self._references: dict[Future[Any], Any] = {}
        super().__init__(max(1, int(self._ray.cluster_resources().get("CPU", 1))))

    def start(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], retries: int) -> Any:
        """Submit to the cluster."""
        # As one argument: a function of the program itself is sent with its code.
        reference = self._remote.options(max_retries=retries).remote((fn, args, kwargs))
        inner: Future[Any] = reference.future()
        self._references[inner] = reference
        inner.add_done_callback(self._references.pop)
        return inner

    def stop(self, inner: Any) -> None:
        """Cancel in the cluster."""
        reference = self._references.get(inner)
        if reference is not None:
            self._ray.cancel(reference)

    def told(self, error: BaseException) -> BaseException:
        """Return what a task raised, or why it has not ended."""
        exceptions = self._ray.exceptions
        if isinstance(error, exceptions.RayTaskError):
            cause: Any = error
            return cause.cause
        died = (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError)
        if isinstance(error, died):
            return WorkerDied(f"a ray worker died: {str(error).partition(chr(10))[0]}")
        return error

    def leave(self) -> None:
        """Leave the cluster, if it was joined here."""
        if self._is_own and self._ray.is_initialized():
            self._ray.shutdown()


def _call(call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> Any:
    fn, args, kwargs = call
    return fn(*args, **kwargs)


def cluster(engine: Any) -> Cluster:
    """Join the cluster that an engine names: as `engine` of a fan-out does.

    Raises ValueError for another name, ModuleNotFoundError without its package, EngineError if
    nobody answers.
    """
    if not isinstance(engine, str):
        return Dask(engine)
    if engine == "dask" or engine.startswith(("tcp://", "tls://", "ws://", "wss://")):
        return Dask(engine)
    if engine == "ray" or engine.startswith("ray://"):
        return Ray(engine)
    raise ValueError(
        f'engine must be "dask", "ray", the address of a cluster or a distributed.Client, not '
        f"{engine!r}"
    )


def _imported(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(
            f'engine="{extra}" needs the package {module} ({error}): pip install "ungil[{extra}]"'
        ) from None
