"""The pool of a `share.Manager`: the methods of `multiprocessing.Pool`, upon `share.Pool`."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from itertools import chain, islice
from multiprocessing import TimeoutError as LateError
from queue import Empty, SimpleQueue
from typing import Any, Self

from ungil.share._heap import Heap
from ungil.share._pool.map import run_chunk, run_chunk_of_tuples
from ungil.share._pool.pool import Pool

# As multiprocessing does: four chunks for each worker.
_CHUNKS_A_WORKER = 4

Callback = Callable[[Any], object] | None


class Outcome:
    """What becomes of a call, or of several: `multiprocessing.pool.AsyncResult`."""

    def __init__(
        self, futures: list[Future[Any]], made: Callable[[list[Any]], Any], callback: Callback
    ) -> None:
        self._futures = futures
        self._made = made
        self._callback = callback
        self._has_called: threading.Event | None = None

    def followed(self, error_callback: Callback) -> Self:
        """Have the callbacks called when it has ended, and before anybody sees that it has."""
        if (self._callback is None and error_callback is None) or not self._futures:
            return self
        has_called = self._has_called = threading.Event()
        left, lock = len(self._futures), threading.Lock()

        def ended(_: Future[Any]) -> None:
            nonlocal left
            with lock:
                left -= 1
                if left:
                    return
            try:
                value = self._value()
            except BaseException as error:  # Of a task that has exited, too.
                if error_callback is not None:
                    error_callback(error)
            else:
                if self._callback is not None:
                    self._callback(value)
            finally:
                has_called.set()

        for future in self._futures:
            future.add_done_callback(ended)
        return self

    def get(self, timeout: float | None = None) -> Any:
        """Return the value, or raise what the call raised.

        Raises multiprocessing.TimeoutError after `timeout` seconds.
        """
        self.wait(timeout)
        if not self.ready():
            raise LateError
        return self._value()

    def _value(self) -> Any:
        return self._made([future.result() for future in self._futures])

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it has ended, at most `timeout` seconds."""
        if self._has_called is not None:
            self._has_called.wait(timeout)
            return
        if len(self._futures) > 1:
            wait(self._futures, timeout)
            return
        for future in self._futures:
            with contextlib.suppress(TimeoutError):
                future.exception(timeout)

    def ready(self) -> bool:
        """Whether it has ended."""
        if self._has_called is not None:
            return self._has_called.is_set()
        return all(future.done() for future in self._futures)

    def successful(self) -> bool:
        """Whether nothing was raised. Raises ValueError if it has not ended."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return all(future.exception() is None for future in self._futures)


class Results(Iterator[Any]):
    """An iterator with `next(timeout)`, as `imap` of multiprocessing returns it.

    An error of a call is raised in its place, and the next results come after it.
    """

    def __init__(self, futures: list[Future[Any]], *, ordered: bool, in_chunks: bool) -> None:
        self._waiting = deque(futures)
        self._ended: SimpleQueue[Future[Any]] | None = None if ordered else SimpleQueue()
        self._in_chunks = in_chunks
        self._values: Iterator[Any] = iter(())
        if self._ended is not None:
            for future in futures:
                future.add_done_callback(self._ended.put)

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """Return the next result, or raise what the call raised.

        Raises multiprocessing.TimeoutError after `timeout` seconds; call it again then. Raises
        StopIteration after the last result.
        """
        while True:
            for value in self._values:
                return value
            if not self._waiting:
                raise StopIteration
            result = self._result(timeout)
            if not self._in_chunks:
                return result
            self._values = iter(result)

    def _result(self, timeout: float | None) -> Any:
        """Wait for a task, and return what it returned."""
        if self._ended is None:
            future = self._waiting[0]
            _wait_for(future, timeout)
        else:
            try:
                future = self._ended.get(timeout=None if timeout is None else max(0.0, timeout))
            except Empty:
                raise LateError from None
        # Where they are taken as they end, only their number matters.
        self._waiting.popleft()
        return future.result()


def _wait_for(future: Future[Any], timeout: float | None) -> None:
    """Wait until a task has ended, however. Raises multiprocessing.TimeoutError."""
    with contextlib.suppress(TimeoutError):
        future.exception(timeout)
    if not future.done():
        raise LateError


class ManagedPool:
    """Worker processes with the methods of `multiprocessing.Pool`."""

    def __init__(
        self,
        processes: int | None,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        maxtasksperchild: int | None,
        context: Any,
        *,
        heap: Heap,
    ) -> None:
        self._pool = Pool(
            processes,
            context,
            initializer,
            initargs,
            max_tasks_per_child=maxtasksperchild,
            heap=heap,
        )
        self._workers = self._pool.max_workers
        self._is_closed = False

    def _running(self) -> Pool:
        if self._is_closed:
            raise ValueError("Pool not running")
        return self._pool

    def apply(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwds: dict[str, Any] | None = None,
    ) -> Any:
        """Call a function in a worker, and return what it returns."""
        return self._running().submit(func, *args, **(kwds or {})).result()

    def apply_async(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwds: dict[str, Any] | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> Outcome:
        """Call a function in a worker."""
        future = self._running().submit(func, *args, **(kwds or {}))
        return Outcome([future], lambda values: values[0], callback).followed(error_callback)

    def map(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None
    ) -> list[Any]:
        """Return what a function returns for each item."""
        return self.map_async(func, iterable, chunksize).get()

    def map_async(
        self,
        func: Callable[[Any], Any],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> Outcome:
        """Call a function with each item."""
        return self._mapped(run_chunk, func, iterable, chunksize, callback, error_callback)

    def starmap(
        self,
        func: Callable[..., Any],
        iterable: Iterable[tuple[Any, ...]],
        chunksize: int | None = None,
    ) -> list[Any]:
        """Return what a function returns for the items of each tuple."""
        return self.starmap_async(func, iterable, chunksize).get()

    def starmap_async(
        self,
        func: Callable[..., Any],
        iterable: Iterable[tuple[Any, ...]],
        chunksize: int | None = None,
        callback: Callback = None,
        error_callback: Callback = None,
    ) -> Outcome:
        """Call a function with the items of each tuple."""
        run = run_chunk_of_tuples
        return self._mapped(run, func, iterable, chunksize, callback, error_callback)

    def _mapped(
        self,
        run: Callable[..., list[Any]],
        func: Callable[..., Any],
        iterable: Iterable[Any],
        chunksize: int | None,
        callback: Callback,
        error_callback: Callback,
    ) -> Outcome:
        pool, items = self._running(), [*iterable]
        size = chunksize or max(1, -(-len(items) // (self._workers * _CHUNKS_A_WORKER)))
        futures = [
            pool.submit(run, func, items[at : at + size]) for at in range(0, len(items), size)
        ]
        made = Outcome(futures, lambda values: [*chain.from_iterable(values)], callback)
        return made.followed(error_callback)

    def imap(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int = 1
    ) -> Results:
        """Return an iterator over what a function returns for each item, in their order."""
        return self._imapped(func, iterable, chunksize, ordered=True)

    def imap_unordered(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int = 1
    ) -> Results:
        """Return an iterator over what a function returns for each item, as it comes."""
        return self._imapped(func, iterable, chunksize, ordered=False)

    def _imapped(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], size: int, *, ordered: bool
    ) -> Results:
        pool = self._running()
        if size < 1:
            raise ValueError(f"chunksize must be >= 1, not {size}")
        if size == 1:
            futures = [pool.submit(func, item) for item in iterable]
        else:
            items = iter(iterable)
            chunks = iter(lambda: [*islice(items, size)], [])
            futures = [pool.submit(run_chunk, func, chunk) for chunk in chunks]
        return Results(futures, ordered=ordered, in_chunks=size > 1)

    def close(self) -> None:
        """Take no more calls."""
        self._is_closed = True
        self._pool.shutdown(wait=False)

    def terminate(self) -> None:
        """End the workers at once."""
        self._is_closed = True
        self._pool.kill_workers()

    def join(self) -> None:
        """Wait until all workers have ended. Raises ValueError before `close` or `terminate`."""
        if not self._is_closed:
            raise ValueError("Pool is still running")
        self._pool.shutdown()

    def __enter__(self) -> Self:
        self._running()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.terminate()
