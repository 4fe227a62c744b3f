"""What a pool's `submit` returns: a future that costs little until somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from concurrent.futures._base import (
    CANCELLED_AND_NOTIFIED,
    FINISHED,
    LOGGER,
    PENDING,
)
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ungil.share._pool.withdrawal import withdraw

if TYPE_CHECKING:
    from ungil.share._pool.calls import Item
    from ungil.share._pool.core import Core

T = TypeVar("T")

_DONE = (FINISHED, CANCELLED_AND_NOTIFIED)

ONLY_THERE: Final = (
    "only the process that submitted a task can wait for it, and a fork cannot: make another pool"
)
"""What a forked child is told that waits for a task of its parent."""


class Future(futures.Future[T], Generic[T]):
    """The future of a task.

    Its lock is the pool's, so that many results are settled under one. A condition of its own, and
    lists of who waits for it, it has only if somebody does.
    """

    _state = PENDING
    _result: Any = None
    _exception: BaseException | None = None
    _done_callbacks: Any = ()
    _waited: threading.Condition | None = None
    _watchers: list[Any] | None = None
    item: Item = b""
    """The task, as long as it may have to be put into the line again."""
    overdue_s: float | None = None
    """Its time limit, if it was killed for that."""

    def __init__(self, core: Core, number: int, function: int | str, retries: int) -> None:
        # Not the base's: it makes the lock and the condition, which take most of a submit.
        self._core = core
        self.number = number
        self.function = function
        """Its number in the pool, or its name."""
        self.retries = retries
        """How often it may still run again if its worker dies."""

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]  # pyright: ignore
        """Those of concurrent.futures, who add themselves to it with the lock."""
        found = self._watchers
        if found is None:
            if self._state == PENDING:
                self._refuse_if_foreign()
            found = self._watchers = []
            self._core.call()
        return found

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]  # pyright: ignore
        found = self._waited
        if self._state == PENDING:
            self._core.call()
        if found is None:
            with self._core.lock:
                found = self._waited
                if found is None:
                    lock: Any = self._core.gated
                    found = self._waited = threading.Condition(lock)
        return found

    def result(self, timeout: float | None = None) -> T:
        """Return what the function returned, or raise what it raised.

        Waits at most `timeout` seconds. Raises TimeoutError, CancelledError, WorkerDied, and
        RuntimeError in a forked child if the task had not ended when it was forked.
        """
        if self._state == PENDING and self._core.wait_for(self, timeout):
            timeout = 0.0
        if self._state == FINISHED and self._exception is None:
            return self._result
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the function raised, None if it returned; waits as `result` does."""
        if self._state == PENDING:
            self._refuse_if_foreign()
        return super().exception(timeout)

    def _refuse_if_foreign(self) -> None:
        if self._core.is_foreign:
            raise RuntimeError(ONLY_THERE)

    def done(self) -> bool:
        """Whether it was cancelled, or has ended."""
        if self._state in _DONE:
            return True
        self._core.call()
        return False

    def done_yet(self) -> bool:
        """As `done`, for who collects results itself."""
        return self._state in _DONE

    def running(self) -> bool:
        """Whether a worker runs it now."""
        return self._state == PENDING and self._core.is_running(self.number)

    def cancel(self) -> bool:
        """Take the task out of the line, and return whether that was in time.

        One that a worker has begun goes on. A forked child cancels nothing.
        """
        core = self._core
        if not core.is_foreign:
            with core.lock:
                is_withdrawn = self._state == PENDING and core.withdraw(self)
                if is_withdrawn:
                    self.cancel_now()
            if is_withdrawn:
                core.tell([self])
        return self._state == CANCELLED_AND_NOTIFIED

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Have `fn(self)` called when it ends or is cancelled; now, if it is already.

        What it raises is logged, but for Ctrl-C in the main thread.
        """
        with self._core.lock:
            if self._state not in _DONE:
                self._done_callbacks = [*self._done_callbacks, fn]
                self._core.call()
                return
        self._call(fn)

    def _call_back(self) -> None:
        callbacks, self._done_callbacks = iter(self._done_callbacks), ()
        try:
            for callback in callbacks:
                self._call(callback)
        finally:
            # Those after the one that Ctrl-C has ended.
            for callback in callbacks:
                self._call(callback)

    def _call(self, callback: Callable[[Any], object]) -> None:
        try:
            callback(self)
        except BaseException as error:
            # A result that it asks for may be the exit of a task, which is not for this thread.
            if is_interrupt(error):
                raise
            LOGGER.exception("exception calling callback for %r", self)

    def finish(self, value: Any, error: BaseException | None) -> None:
        """With the pool's lock: it has ended. `call_back` is to be called without."""
        if self._state in _DONE:
            return
        self.item = b""
        self._result = value
        self._exception = error
        self._state = FINISHED
        for waiter in self._watchers or ():
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
        for waiter in self._watchers or ():
            waiter.add_cancelled(self)
        if self._waited is not None:
            self._waited.notify_all()


def call_back(those: Iterable[Future[Any]]) -> None:
    """Without a lock: tell whom it concerns that they have ended."""
    left = iter(those)
    try:
        for future in left:
            if future._done_callbacks:  # pyright: ignore[reportPrivateUsage]
                future._call_back()  # pyright: ignore[reportPrivateUsage]
    except BaseException:
        # Ctrl-C in one of them is not the end of the others.
        call_back(left)
        raise


def cancel_all(those: Sequence[futures.Future[Any]]) -> None:
    """Cancel what one executor returned; tasks of a pool leave its line in one go."""
    if those and isinstance(those[0], Future):
        mine: Any = those
        withdraw(mine[0]._core, mine)
        return
    for future in those:
        future.cancel()


def is_interrupt(error: BaseException) -> bool:
    """Whether it may be Ctrl-C: no other thread than the main one is interrupted."""
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
    )
