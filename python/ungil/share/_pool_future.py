"""What a pool's `submit` returns: a future that costs little until somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent import futures
from concurrent.futures._base import (
    CANCELLED_AND_NOTIFIED,
    FINISHED,
    LOGGER,
    PENDING,
)
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from ungil.share._pool_calls import Item
    from ungil.share._pool_core import Core

T = TypeVar("T")

_DONE = (FINISHED, CANCELLED_AND_NOTIFIED)


class Future(futures.Future[T], Generic[T]):
    """The future of a task.

    Its lock is the pool's, so that many results are settled under one; a condition of its own it
    has only if somebody waits.
    """

    def __init__(self, core: Core, number: int, name: str, retries: int) -> None:
        # Not the base's: it makes the lock and the condition, which take most of a submit.
        self._state = PENDING
        self._result: Any = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Callable[[Any], object]] = []
        self._waited: threading.Condition | None = None
        self._core = core
        self.number = number
        self.name = name
        """Of its function."""
        self.retries = retries
        """How often it may still run again if its worker dies."""
        self.item: Item = b""
        """The task, as long as it may have to be put into the line again."""
        self.overdue_s: float | None = None
        """Its time limit, if it was killed for that."""

    @property
    def _condition(self) -> threading.Condition:
        found = self._waited
        if found is None:
            with self._core.lock:
                found = self._waited
                if found is None:
                    found = self._waited = threading.Condition(self._core.lock)  # type: ignore[arg-type]
        return found

    def result(self, timeout: float | None = None) -> T:
        """Return what the function returned, or raise what it raised.

        Waits at most `timeout` seconds. Raises TimeoutError, CancelledError, WorkerDied.
        """
        if self._state == FINISHED and self._exception is None:
            return self._result
        return super().result(timeout)

    def done(self) -> bool:
        """Whether it was cancelled, or has ended."""
        return self._state in _DONE

    def running(self) -> bool:
        """Whether a worker runs it now."""
        return self._state == PENDING and self._core.is_running(self.number)

    def cancel(self) -> bool:
        """Take the task out of the line, and return whether that was in time.

        One that a worker has begun goes on.
        """
        with self._core.lock:
            if self._state == PENDING and self._core.withdraw(self):
                self.cancel_now()
        if self._state == CANCELLED_AND_NOTIFIED:
            self._call_back()
            return True
        return False

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Have `fn(self)` called when it ends or is cancelled; now, if it is already.

        What it raises is logged.
        """
        with self._core.lock:
            if self._state not in _DONE:
                self._done_callbacks.append(fn)
                return
        self._call(fn)

    def _call_back(self) -> None:
        callbacks, self._done_callbacks = self._done_callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Any], object]) -> None:
        try:
            callback(self)
        except Exception:
            LOGGER.exception("exception calling callback for %r", self)

    def finish(self, value: Any, error: BaseException | None) -> None:
        """With the pool's lock: it has ended. `call_back` is to be called without."""
        if self._state in _DONE:
            return
        self.item = b""
        self._result = value
        self._exception = error
        self._state = FINISHED
        for waiter in self._waiters:
            if error is None:
                waiter.add_result(self)
            else:
                waiter.add_exception(self)
        if self._waited is not None:
            self._waited.notify_all()

    def cancel_now(self) -> None:
        """With the pool's lock: it was taken out of the line."""
        self.item = b""
        self._state = CANCELLED_AND_NOTIFIED
        for waiter in self._waiters:
            waiter.add_cancelled(self)
        if self._waited is not None:
            self._waited.notify_all()


def call_back(those: Iterable[Future[Any]]) -> None:
    """Without a lock: tell whom it concerns that they have ended."""
    for future in those:
        if future._done_callbacks:  # pyright: ignore[reportPrivateUsage]
            future._call_back()  # pyright: ignore[reportPrivateUsage]
