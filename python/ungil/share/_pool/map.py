"""`map` of a pool: lazy, in chunks, in order or as it comes."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import chain, islice, repeat, starmap
from operator import length_hint
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from ungil.share._pool.future import ONLY_THERE, cancel_all

T = TypeVar("T")

Progress: TypeAlias = Callable[[int, int | None], object]


class Submit(Protocol):
    """What puts a task into the line."""

    def __call__(self, fn: Callable[..., T], /, *args: Any) -> Future[T]: ...


def run_chunk(fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """In a worker: call a function with each of some items."""
    return _whole([*map(fn, items)], items)


def run_chunk_of_tuples(fn: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
    """In a worker: call a function with the items of each of some tuples."""
    return _whole([*starmap(fn, items)], items)


def _whole(results: list[Any], items: Sequence[Any]) -> list[Any]:
    # To `map` a StopIteration of the function is the end of the items.
    if len(results) < len(items):
        raise RuntimeError(f"the function raised StopIteration for {items[len(results)]!r}")
    return results


def mapped(
    submit: Submit,
    fn: Callable[..., Any],
    iterables: Sequence[Iterable[Any]],
    *,
    timeout: float | None,
    chunksize: int,
    buffersize: int | None,
    ordered: bool,
    progress: Progress | None,
) -> Iterator[Any]:
    """Submit what `buffersize` allows, at once, and return an iterator over the results."""
    if not callable(fn):
        raise TypeError(f"fn={fn!r} cannot be called")
    if not isinstance(chunksize, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"chunksize={chunksize!r} is not a whole number")
    if chunksize < 1:
        raise ValueError(f"chunksize must be >= 1, not {chunksize}")
    if buffersize is not None and not isinstance(buffersize, int):  # pyright: ignore
        raise TypeError(f"buffersize must be an integer or None, not {buffersize!r}")
    if buffersize is not None and buffersize < 1:
        raise ValueError(f"buffersize must be None or > 0, not {buffersize}")
    end = None if timeout is None else time.monotonic() + timeout
    run = _Run(submit, fn, iterables, chunksize, ordered, end)
    total = _total(iterables)
    run.fill(buffersize)
    results = chain.from_iterable(run.results())
    return results if progress is None else _told(results, progress, total)


class _Run:
    """One `map` under way."""

    def __init__(
        self,
        submit: Submit,
        fn: Callable[..., Any],
        iterables: Sequence[Iterable[Any]],
        chunksize: int,
        ordered: bool,
        end: float | None,
    ) -> None:
        # Held as long as there is something to submit: it keeps the pool.
        self._submit: Submit | None = submit
        self._fn = fn
        self._end = end
        self._in_chunks = chunksize > 1
        self._is_single = len(iterables) == 1
        self._waiting: deque[Future[Any]] = deque()
        # What has ended, comes into the queue of the process that submitted it.
        self._pid = os.getpid()
        self._done: SimpleQueue[Future[Any]] | None = None if ordered else SimpleQueue()
        self._under_way: set[Future[Any]] = set()
        self._calls = (
            self._chunks(iterables, chunksize) if self._in_chunks else zip(*iterables, strict=False)
        )

    def _chunks(self, iterables: Sequence[Iterable[Any]], size: int) -> Iterator[Sequence[Any]]:
        first = iterables[0] if iterables else ()
        if self._is_single and isinstance(first, range):
            # A part of a range is a range: three numbers, whatever its size.
            yield from (first[at : at + size] for at in range(0, len(first), size))
            return
        items = iter(first) if self._is_single else zip(*iterables, strict=False)
        while chunk := [*islice(items, size)]:
            yield chunk

    def fill(self, number: int | None) -> None:
        """Submit so many more tasks; None: all."""
        submit = self._submit
        if submit is None:
            return
        count = 0
        for call in islice(self._calls, number):
            count += 1
            if not self._in_chunks:
                future = submit(self._fn, *call)
            elif self._is_single:
                future = submit(run_chunk, self._fn, call)
            else:
                future = submit(run_chunk_of_tuples, self._fn, call)
            if self._done is None:
                self._waiting.append(future)
            else:
                self._under_way.add(future)
                future.add_done_callback(self._done.put)
        if number is None or count < number:
            self._submit = None

    def results(self) -> Iterator[Iterable[Any]]:
        """Yield those of each task; none of them is kept once it was taken."""
        try:
            while self._waiting or self._under_way:
                # A task more for one that has ended, before its results are used.
                ended = self._next()
                self.fill(1)
                ended.reverse()
                # Takes one after the other away, without a step of Python for each.
                yield starmap(ended.pop, repeat((), len(ended)))
                del ended
        finally:
            cancel_all([*reversed(self._waiting), *self._under_way])

    def _next(self) -> list[Any]:
        """Wait for a task, and return its results."""
        left = None if self._end is None else self._end - time.monotonic()
        if self._done is None:
            # Still in the line of those to cancel, if the time is over.
            result = self._waiting[0].result(left)
            self._waiting.popleft()
        else:
            if os.getpid() != self._pid:
                raise RuntimeError(ONLY_THERE)
            try:
                future = self._done.get(timeout=None if left is None else max(0.0, left))
            except Empty:
                raise TimeoutError from None
            self._under_way.discard(future)
            result = future.result()
        return result if self._in_chunks else [result]


def _total(iterables: Sequence[Iterable[Any]]) -> int | None:
    lengths = [length_hint(iterable, -1) for iterable in iterables]
    return min(lengths) if lengths and min(lengths) >= 0 else None


def _told(results: Iterator[Any], progress: Progress, total: int | None) -> Iterator[Any]:
    for number, result in enumerate(results, 1):
        progress(number, total)
        yield result
        del result
