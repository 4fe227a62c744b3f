"""Tasks that submit tasks: in a worker, a pool is a way to ask the process that made it.

The worker tells it as it tells results, and what became of the task comes into its own inbox. Who
waits for a task of its own needs its place meanwhile: the pool has one worker more for as long.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

from ungil.share._pool import calls
from ungil.share._pool.line import Desk, Line


class Nested(Future[Any]):
    """The future of a task of a task; it cannot be cancelled."""

    def cancel(self) -> bool:
        """Return False."""
        return False


class Here:
    """The pool that this process is a worker of."""

    def __init__(self, line: Line, desk: Desk, worker: int) -> None:
        self.line = line
        self._desk = desk
        self._worker = worker
        self.pid = os.getpid()
        self._numbers = count(1)
        self._pending: dict[int, Nested] = {}
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, limit: float, retries: int, called: bytes, name: str) -> Nested:
        """Ask for a task."""
        future = Nested()
        future.set_running_or_notify_cancel()
        with self._lock:
            number = next(self._numbers)
            self._pending[number] = future
            if self._reader is None:
                self._reader = threading.Thread(
                    target=self._read, name="ungil-pool-nested", daemon=True
                )
                self._reader.start()
        asked = (self._worker, number, called, name, limit, retries)
        try:
            self.line.results.append(calls.result(0, calls.NESTED, asked))
        except BaseException:
            del self._pending[number]
            raise
        self.line.bell.release()
        return future

    def _read(self) -> None:
        """In a thread: settle what comes into the inbox."""
        inbox, mail = self._desk.inbox, self._desk.mail
        while True:
            mail.acquire()
            try:
                item = inbox.popleft()
            except IndexError:
                continue
            number, kind = calls.about(item)
            future = self._pending.pop(number)
            try:
                value = calls.value_of(item)
            except BaseException as error:
                future.set_exception(error)
                continue
            if kind == calls.VALUE:
                future.set_result(value)
            else:
                future.set_exception(value)


_here: Here | None = None


def be_worker(line: Line, desk: Desk, worker: int) -> None:
    """Make this process that worker of the pool with this line."""
    global _here
    _here = Here(line, desk, worker)


def submit(
    line: Line,
    limit: float,
    retries: int,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Future[Any]:
    """Submit from another process than the pool's: one of its workers, or RuntimeError."""
    here = _of(line.token)
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return here.submit(limit, retries, calls.whole_call(fn, args, kwargs), name)


def found(token: str, limit: float, retries: int) -> object:
    """Return the pool of a task that was given it; what a pickled one calls."""
    from ungil.share._pool.core import Foreign
    from ungil.share._pool.pool import PoolTasks

    core: Any = Foreign(_of(token).line)
    return PoolTasks(None, core, limit, retries)


def _of(token: str) -> Here:
    if _here is None or _here.line.token != token or _here.pid != os.getpid():
        raise RuntimeError(
            "only the process that made a pool and its workers can use it: make another pool here"
        )
    return _here
