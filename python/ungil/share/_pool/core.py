"""What a pool knows in the process that made it: tasks on their way, and who gets their results."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections import deque
from concurrent.futures.process import BrokenProcessPool
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any

from ungil.share._heap import Heap
from ungil.share._pool import calls
from ungil.share._pool.future import ONLY_THERE, Future, call_back, is_interrupt
from ungil.share._pool.gate import Gated
from ungil.share._pool.line import Line
from ungil.share._pool.making import new_line
from ungil.share._pool.withdrawal import withdraw

if TYPE_CHECKING:
    from ungil.share._pool.calls import Item
    from ungil.share._pool.staff import Staff

# As many results as this at once, and more are on their way: the collector naps rather than rests,
# so that workers need not wake it for each.
_MANY = 8
_NAP_S = 0.0002
# How long somebody who has waited for a result, and collected, is expected to do so again.
_LED_S = 0.02
# How long at most it is left to somebody who goes on waiting. Who waits in another way calls.
_MOST_LED_S = 1.0
# How often who sleeps looks whether the pool has ended, as at a damaged bell nobody is woken.
_LOOK_S = 1.0
# How a lock is acquired that may be another thread's.
_AT_ONCE = (False,)
# Results that are read before any of them is told.
_MOST = 1024


class Core:
    """Tasks on their way, by number. Its users hold it; its threads hold nothing of its users."""

    def __init__(self, heap: Heap) -> None:
        self.is_foreign = False
        """Whether this process has it by a fork only."""
        self.is_exiting = False
        """Whether the program is ending."""
        self.heap = heap
        self.line: Line = new_line(heap)
        self.lock = threading.RLock()
        self.gated = Gated(self.lock)
        """The same lock, for who may wait for futures of several pools."""
        self.pending: dict[int, Future[Any]] = {}
        self.broken: str | None = None
        """Why no task can run any more."""
        self.closing = False
        self.staff: Staff
        self._collecting = threading.Lock()
        # Of who collects. Ctrl-C may end that anywhere, and then the next one goes on: results that
        # are taken and not read, those that are read and not settled, and settled futures.
        self._raw: deque[Item] = deque()
        self._news: list[tuple[int, Any, BaseException | None]] = []
        self._ended: list[Future[Any]] = []
        self._last = 0
        self._functions: dict[Any, int] = {}
        self._append = self.line.tasks.append
        self._is_shut = False
        # Of the thread that waits for a task and collects meanwhile.
        self._leading = threading.Lock()
        self._awaited: Future[Any] | None = None
        self._was_led = False
        self._stands_by = False
        self._called = threading.Event()
        self._is_over = False

    def disown(self) -> None:
        """In a forked child: it is the parent's, whose threads may just have held its locks."""
        self.is_foreign = True
        self.lock._at_fork_reinit()  # type: ignore[attr-defined]  # pyright: ignore
        # So nobody calls, and comes to the lock of that.
        self._stands_by = False

    # Tasks.

    def send(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], limit: float, retries: int
    ) -> Future[Any]:
        """Put a task at the end of the line.

        What cannot be pickled is told by the future, as concurrent.futures does. Raises
        MemoryError if the heap is full, RuntimeError if the pool takes no tasks.
        """
        try:
            known = self._functions.get(fn) or self._register(fn)
        except TypeError:  # It has no hash.
            known = None
        function: int | str = known or getattr(fn, "__qualname__", type(fn).__qualname__)
        error: Exception | None = None
        call: Item = b""
        try:
            if known is None:
                call = calls.whole_call(fn, args, kwargs)
            else:
                call = calls.call(known, args, kwargs)
        except Exception as why:
            error = why
        with self.lock:
            if self._is_shut:
                self._refuse()
            self._last = number = self._last + 1
            future: Future[Any] = Future(self, number, function, retries)
            if error is not None:
                future.finish(None, error)
                return future
            future.item = item = calls.addressed(call, limit, number)
            try:
                self._put(future, item)
            except (TypeError, ValueError):
                # An object of another heap is no value of this one: its handle is.
                if known is None or type(item) is bytes:
                    raise
                call = calls.pickled_call(known, args, kwargs)
                future.item = item = calls.addressed(call, limit, number)
                self._put(future, item)
        return future

    def send_call(self, called: Item, name: str, limit: float, retries: int) -> Future[Any]:
        """Put a task of a task into the line, also if those of users are taken no more."""
        with self.lock:
            if self.broken is not None:
                self._refuse()
            self._last = number = self._last + 1
            future: Future[Any] = Future(self, number, name, retries)
            future.item = item = calls.addressed(called, limit, number)
            self._put(future, item)
        return future

    def _put(self, future: Future[Any], item: Item) -> None:
        self.pending[future.number] = future
        try:
            self._append(item)
            self.staff.ring()
        except BaseException:
            # There is no room, or no worker can be started.
            del self.pending[future.number]
            with contextlib.suppress(ValueError, TypeError):
                self.line.tasks.remove(item)
            raise

    def _refuse(self) -> None:
        if self.broken is not None:
            raise BrokenProcessPool(self.broken)
        if self.is_exiting:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        if self.closing:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _register(self, fn: Any) -> int | None:
        """Give a function a number, if its pickle is its name."""
        if not calls.by_reference(fn):
            return None
        try:
            pickled = pickle.dumps(fn, 5)
        except Exception:
            return None
        with self.lock:
            number = self._functions.get(fn)
            if number is None:
                number = len(self._functions) + 1
                self.line.functions[number] = pickled
                self._functions[fn] = number
        return number

    def name_of(self, future: Future[Any]) -> str:
        """Return the name of the function of a task."""
        if isinstance(future.function, str):
            return future.function
        # Others may submit new ones meanwhile.
        functions = [*self._functions.items()]
        fn = next(fn for fn, number in functions if number == future.function)
        return getattr(fn, "__qualname__", repr(fn))

    def is_running(self, number: int) -> bool:
        """Whether a worker has it in hand."""
        return number in self.staff.in_hand()

    def withdraw(self, future: Future[Any]) -> bool:
        """With the lock: take a task out of the line; False if a worker was quicker."""
        try:
            self.line.tasks.remove(future.item)
        except ValueError:
            return False
        self.forget(future.number)
        return True

    def withdraw_all(self) -> None:
        """Cancel all tasks that no worker has taken."""
        with self.lock:
            those = [*self.pending.values()]
        withdraw(self, those)

    def again(self, future: Future[Any]) -> MemoryError | None:
        """With the lock: put a task at the head of the line once more.

        Returns why that failed; the task is to be failed then, without the lock.
        """
        try:
            self.line.tasks.appendleft(future.item)
        except MemoryError as error:
            return error
        try:
            self.staff.ring()
        except MemoryError as error:
            with contextlib.suppress(ValueError):
                self.line.tasks.remove(future.item)
            return error
        return None

    def fail(self, number: int, error: BaseException) -> None:
        """A task has ended without a result."""
        with self.lock:
            future = self.pending.get(number)
            if future is None:
                return
            future.finish(None, error)
            self.forget(number)
        self.tell([future])

    def break_off(self, why: str) -> None:
        """No task can run any more."""
        with self.lock:
            if self.broken is None:
                self.broken = why
            self._is_shut = True
            failed = [*self.pending.values()]
            for future in failed:
                future.finish(None, BrokenProcessPool(why))
            self.pending.clear()
            # The heap may be damaged, and that may be why.
            with contextlib.suppress(Exception):
                self.line.tasks.clear()
        self.tell(failed)
        self.staff.wake()

    def close(self) -> None:
        """Take no more tasks; those that are there run to their end."""
        if self.is_foreign:
            return
        with self.lock:
            self.closing = self._is_shut = True
            self.staff.close()

    def forget(self, number: int) -> None:
        """With the lock: a task has ended."""
        del self.pending[number]
        if self.closing and not self.pending:
            self.staff.wake()

    # Results.

    def collect_until_over(self) -> None:
        """In a thread: collect results as they come, unless somebody does who waits for one."""
        bell = self.line.bell
        patience_s = _LED_S
        while not self._is_over:
            if self.collect() >= _MANY:
                time.sleep(_NAP_S)
                continue
            # Said before it is looked whether anybody leads: who stops then sees it, and calls.
            self._stands_by = True
            if self._awaited is not None or self._was_led:
                # Not even for a moment: it would take the unit that is to wake who waits.
                patience_s = min(2 * patience_s, _MOST_LED_S) if self._awaited else _LED_S
                self._was_led = False
                self._called.wait(patience_s)
                self._stands_by = False
                self._called.clear()
            else:
                self._stands_by = False
                patience_s = _LED_S
                bell.acquire(True, _LOOK_S)
                # It may have been the unit that was to wake who waits.
                self._wake_leader()

    def call(self) -> None:
        """Somebody waits who does not collect."""
        self._was_led = False
        if self._stands_by:
            self._called.set()

    def end(self) -> None:
        """There are no more results."""
        self._is_over = True
        self._called.set()
        with contextlib.suppress(Exception):
            self.line.bell.release()

    def wait_for(self, future: Future[Any], timeout: float | None) -> bool:
        """Collect until a task has ended, so that no other thread has to be woken for it.

        False, at once, if another thread does that already; True also if the time is over. Raises
        RuntimeError in a forked child.
        """
        if self.is_foreign:
            raise RuntimeError(ONLY_THERE)
        bell = self.line.bell
        end = None if timeout is None else time.monotonic() + timeout
        # Also by one step that Ctrl-C finds done or not done: nobody else would ever lead again.
        leads: list[bool] = []
        try:
            leads.extend(map(self._leading.acquire, _AT_ONCE))
            if not leads[0]:
                self.call()
                return False
            self._awaited = future
            self._was_led = True
            while True:
                # Also after it was woken in vain: the unit that it took may be of another result.
                self.collect(is_leader=True)
                if future.done_yet():
                    break
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    break
                bell.acquire(True, _LOOK_S if left is None else min(left, _LOOK_S))
        except BaseException:
            # The unit that it took may be that of a result which nobody has collected.
            with contextlib.suppress(Exception):
                bell.release()
            raise
        finally:
            if leads and leads[0]:
                self._awaited = None
                self._leading.release()
                if self.pending:
                    self.call()
        return True

    def collect_all(self) -> None:
        """Settle everything that workers have told until now."""
        for _ in range((len(self.line.results) + len(self._raw)) // _MOST + 1):
            self.collect()

    def collect(self, *, is_leader: bool = False) -> int:
        """Settle what has ended; return how much that was."""
        with self._collecting:
            self._read()
            news, ended = self._news, self._ended
            count = len(news)
            if not (count or ended):
                return 0
            with self.lock:
                pending = self.pending
                get, add = pending.get, ended.append
                for number, value, error in news:
                    future = get(number)
                    if future is not None:
                        future.finish(value, error)
                        add(future)
                        del pending[number]
                if self.closing and not pending:
                    self.staff.wake()
            self._news, self._ended = [], []
        if not is_leader:
            self._wake_leader()
        call_back(ended)
        return count

    def tell(self, ended: list[Future[Any]]) -> None:
        """Without the lock: tell whom it concerns, whatever the heap is like."""
        with contextlib.suppress(Exception):
            self._wake_leader()
        call_back(ended)

    def _wake_leader(self) -> None:
        """Whoever leads may be asleep, and another thread have collected what it waits for."""
        awaited = self._awaited
        if awaited is not None and awaited.done_yet():
            self.line.bell.release()

    def _read(self) -> None:
        """With `_collecting`: take results, and read them."""
        raw, add, take = self._raw, self._news.append, self._raw.popleft
        about, value_of = calls.about, calls.value_of
        # Without a step of Python in between, at which Ctrl-C would lose one.
        try:  # noqa: SIM105, as that takes longer.
            raw.extend(starmap(self.line.results.popleft, repeat((), _MOST - len(raw))))
        except IndexError:
            pass
        while raw:
            item = raw[0]
            number, kind = about(item)
            try:
                value = value_of(item)
            except BaseException as error:  # Unpickling may run anything, and may try to exit.
                if is_interrupt(error):
                    raise
                add((number, None, error))
            else:
                if kind == calls.VALUE:
                    add((number, value, None))
                elif kind == calls.ERROR:
                    add((number, None, value))
                else:
                    # Settled twice it is the same, but not told twice.
                    take()
                    self.staff.told(kind, number, value)
                    continue
            take()


class Foreign:
    """What a worker knows of the pool that it is of."""

    is_foreign = True

    def __init__(self, line: Line) -> None:
        self.line = line
