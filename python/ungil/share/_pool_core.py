"""What a pool knows in the process that made it: tasks on their way, and who gets their results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, Protocol

from ungil.share import _pool_calls as calls
from ungil.share._heap import Heap
from ungil.share._pool_future import Future, call_back
from ungil.share._pool_line import CLOSING, STATE, Line, new_line

if TYPE_CHECKING:
    from ungil.share._pool_staff import Staff

# As many results as this at once, and more are on their way: the collector naps rather than rests,
# so that workers need not wake it for each.
_MANY = 8
_NAP_S = 0.0002
# Results that are read before any of them is told.
_MOST = 1024


class Told(Protocol):
    """Who is told of what workers say beside results."""

    def begun(self, number: int, limit: float, worker: int) -> None: ...


class Core:
    """Tasks on their way, by number. Its users hold it; its threads hold nothing of its users."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.line: Line = new_line(heap)
        self.lock = threading.RLock()
        self.pending: dict[int, Future[Any]] = {}
        self.broken: str | None = None
        """Why no task can run any more."""
        self.closing = False
        self.staff: Staff
        self._collecting = threading.Lock()
        self._last = 0
        self._functions: dict[Any, int] = {}
        self._is_over = False

    # Tasks.

    def send(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], limit: float, retries: int
    ) -> Future[Any]:
        """Put a task at the end of the line.

        What cannot be pickled is told by the future, as concurrent.futures does. Raises
        MemoryError if the heap is full, RuntimeError if the pool takes no tasks.
        """
        try:
            known: int | None = self._functions.get(fn) or self._register(fn)
        except TypeError:  # It has no hash.
            known = None
        error: Exception | None = None
        payload = b""
        if known is None:
            try:
                payload = calls.dumps((fn, args, kwargs))
            except Exception as why:
                error = why
        name = getattr(fn, "__qualname__", type(fn).__qualname__)
        with self.lock:
            self._refuse()
            self._last = number = self._last + 1
            future: Future[Any] = Future(self, number, name, retries)
            if known is not None:
                try:
                    future.item = calls.task(number, limit, known, args, kwargs)
                except Exception as why:
                    error = why
            else:
                future.item = calls.whole_task(number, limit, payload)
            if error is not None:
                future.finish(None, error)
                return future
            self._put(future)
        return future

    def send_payload(self, payload: bytes, name: str, limit: float, retries: int) -> Future[Any]:
        """Put a task that is pickled already at the end of the line."""
        with self.lock:
            self._refuse()
            self._last = number = self._last + 1
            future: Future[Any] = Future(self, number, name, retries)
            future.item = calls.whole_task(number, limit, payload)
            self._put(future)
        return future

    def _put(self, future: Future[Any]) -> None:
        self.pending[future.number] = future
        try:
            self.line.tasks.append(future.item)
        except BaseException:
            del self.pending[future.number]
            raise
        self.staff.ring()

    def _refuse(self) -> None:
        if self.broken is not None:
            raise BrokenProcessPool(self.broken)
        if self.closing:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _register(self, fn: Any) -> int | None:
        """Give a function a number, if its pickle is its name."""
        if not calls.by_reference(fn):
            return None
        try:
            pickled = calls.pickle.dumps(fn, 5)
        except Exception:
            return None
        with self.lock:
            number = self._functions.get(fn)
            if number is None:
                number = len(self._functions) + 1
                self.line.functions[number] = pickled
                self._functions[fn] = number
        return number

    def is_running(self, number: int) -> bool:
        """Whether a worker has it in hand."""
        return number in self.staff.in_hand()

    def withdraw(self, future: Future[Any]) -> bool:
        """With the lock: take a task out of the line; False if a worker was quicker."""
        try:
            self.line.tasks.remove(future.item)
        except ValueError:
            return False
        self._forget(future.number)
        return True

    def withdraw_all(self) -> None:
        """Take all tasks out of the line that no worker has taken."""
        taken: list[Future[Any]] = []
        with self.lock:
            while True:
                try:
                    _, number = calls.number_of(self.line.tasks.pop())
                except IndexError:
                    break
                if (future := self.pending.get(number)) is not None:
                    future.cancel_now()
                    taken.append(future)
                    self._forget(number)
        call_back(taken)

    def again(self, future: Future[Any]) -> None:
        """With the lock: put a task at the head of the line once more."""
        self.line.tasks.appendleft(future.item)
        self.staff.ring()

    def fail(self, number: int, error: BaseException) -> None:
        """A task has ended without a result."""
        with self.lock:
            future = self.pending.get(number)
            if future is None:
                return
            future.finish(None, error)
            self._forget(number)
        call_back([future])

    def break_off(self, why: str) -> None:
        """No task can run any more."""
        with self.lock:
            if self.broken is None:
                self.broken = why
            failed = [*self.pending.values()]
            for future in failed:
                future.finish(None, BrokenProcessPool(why))
            self.pending.clear()
            self.line.tasks.clear()
        call_back(failed)
        self.staff.wake()

    def close(self) -> None:
        """Take no more tasks; those that are there run to their end."""
        with self.lock:
            self.closing = True
        self.staff.wake()

    def _forget(self, number: int) -> None:
        del self.pending[number]
        if self.closing and not self.pending:
            self.staff.wake()

    # Results.

    def collect_until_over(self) -> None:
        """In a thread: collect results as they come."""
        bell = self.line.bell
        while not self._is_over:
            if self.collect() < _MANY:
                bell.acquire()
            else:
                time.sleep(_NAP_S)

    def end(self) -> None:
        """There are no more results."""
        self._is_over = True
        self.line.bell.release()

    def collect(self) -> int:
        """Settle what has ended; return how much that was."""
        with self._collecting:
            news = [*self._read()]
            ended: list[Future[Any]] = []
            with self.lock:
                pending = self.pending
                for number, value, error in news:
                    future = pending.pop(number, None)
                    if future is not None:
                        future.finish(value, error)
                        ended.append(future)
                if self.closing and not pending:
                    self.staff.wake()
        call_back(ended)
        return len(news)

    def _read(self) -> Iterable[tuple[int, Any, BaseException | None]]:
        take = self.line.results.popleft
        for _ in range(_MOST):
            try:
                item = take()
            except IndexError:
                return
            number, kind = calls.about(item)
            try:
                value = calls.value_of(item)
            except BaseException as error:  # Unpickling may run anything, and may try to exit.
                yield number, None, error
                continue
            if kind == calls.VALUE:
                yield number, value, None
            elif kind == calls.ERROR:
                yield number, None, value
            else:
                self.staff.told(kind, number, value)


def state_closing(line: Line) -> None:
    """Tell workers that rest to end."""
    line.state[STATE] = CLOSING


Callback = Callable[[], object]
