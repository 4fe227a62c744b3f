"""Tasks that submit tasks: in a worker, a pool is a way to ask the process that made it.

The worker tells it as it tells results, and what became of the task comes into its own inbox. Who
waits for a task of its own needs its place meanwhile: the pool has one worker more for as long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any

from ungil.share._pool import calls
from ungil.share._pool.place import Place, in_pool

if TYPE_CHECKING:
    from ungil.share._pool.line import Line


class Nested(Future[Any]):
    """The future of a task of a task; it cannot be cancelled."""

    def cancel(self) -> bool:
        """Return False."""
        return False


class _Asker:
    """Asks the pool that this process is a worker of."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._numbers = count(1)
        self._pending: dict[int, Nested] = {}
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, limit: float, retries: int, called: bytes, name: str) -> Nested:
        """Ask for a task."""
        future = Nested()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._reader is None:
                reader = threading.Thread(target=self._read, name="ungil-pool-nested", daemon=True)
                # It may fail; the next task tries again then.
                reader.start()
                self._reader = reader
            number = next(self._numbers)
            self._pending[number] = future
        line = self.place.line
        asked = (self.place.worker, number, called, name, limit, retries)
        try:
            line.results.append(calls.result(0, calls.NESTED, asked))
        except BaseException:
            del self._pending[number]
            raise
        line.bell.release()
        return future

    def _read(self) -> None:
        """In a thread: settle what comes into the inbox."""
        inbox, mail = self.place.desk.inbox, self.place.desk.mail
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


_asker: _Asker | None = None
_making = threading.Lock()


def submit(
    line: Line,
    limit: float,
    retries: int,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Future[Any]:
    """Submit from another process than the pool's: one of its workers, or RuntimeError."""
    asker = _asker_in(line.token)
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return asker.submit(limit, retries, calls.whole_call(fn, args, kwargs), name)


def found(token: str, limit: float, retries: int) -> object:
    """Return the pool of a task that was given it; what a pickled one calls."""
    from ungil.share._pool.core import Foreign
    from ungil.share._pool.pool import PoolTasks

    core: Any = Foreign(in_pool(token).line)
    return PoolTasks(None, core, limit, retries)


def _asker_in(token: str) -> _Asker:
    global _asker
    place = in_pool(token)
    with _making:
        if _asker is None or _asker.place is not place:
            _asker = _Asker(place)
        return _asker
