"""The threads of a fan-out: a slot is one thread, which runs one item after the other.

A thread cannot be ended: an item whose time is over is reported as abandoned, its thread is left
alone, and another takes its place.
"""

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from types import CoroutineType
from typing import Any, TypeAlias

from ungil._native import Dispatcher, Outcome, kept_waiting
from ungil.fanout._asleep import threads_sleep
from ungil.fanout._input import Reader

# Whoever looks later than this for items whose time is over has been kept from it, and so may they.
LATE_SECONDS = 0.005

# When to look again at one that only waits for the GIL or for a processor.
LOOK_AGAIN_SECONDS = 0.005

# Who has used more than this part of its time on a processor has not been kept from it.
KEPT_SHARE = 0.1

# For how many times its time one may be kept from going on.
KEPT_TIMES = 10.0

# How long whoever ends a fan-out waits for an item that is just being read.
READ_SECONDS = 0.02

# A signal that comes when a thread is about to wait for a lock does not end the wait. So no wait of
# the main thread is longer, and Ctrl-C later than that once in a blue moon.
LONGEST_SECONDS = 1.0

_NO_THREAD = "the system lets this process start no thread"

_Deadline: TypeAlias = "tuple[float, Outcome, _Slot, int]"


class Slots:
    """The threads of one fan-out.

    `arrived` is called in any of them when something has finished, at most once until `collected`.
    """

    is_full = False  # whatever the dispatcher lets start can start

    def __init__(
        self,
        fn: Callable[[Any], Any],
        dispatcher: Dispatcher,
        timeout: float | None,
        arrived: Callable[[], None],
    ) -> None:
        self._fn = fn
        self._context = contextvars.copy_context()
        self._dispatcher = dispatcher
        self._timeout = timeout
        self._arrived = arrived
        # Only one thread may ask the dispatcher at once.
        self._lock = threading.Lock()
        # Of an input that may wait, or that runs code of its own.
        self._reader: Reader | None = None
        self._announced = False
        self._running: dict[Outcome, _Slot] = {}
        self._deadlines: deque[_Deadline] = deque()
        # When somebody is to look for items whose time is over.
        self._look_at: float | None = None
        self._unstarted: deque[Outcome] = deque()
        # Threads that wait for an item, the last one that came first.
        self._idle: list[_Slot] = []
        self._numbers = count(1)
        self._closing = False
        if dispatcher.in_stock is not None:
            self._reader = Reader(dispatcher, self._has_come)

    def open(self) -> None:
        """Starts whatever may start now."""
        if self._reader is not None and self._reader.ident is None and not self._closing:
            _start_reader(self._reader)
        self._open_all()

    def _open_all(self) -> bool:
        has_started = False
        while self._open_one():
            has_started = True
        return has_started

    def _has_come(self) -> None:
        """The reader has read an item, or has come to the end."""
        has_started = self._open_all()
        # One that neither starts nor stays in stock changes for how long others have to wait.
        if not self._dispatcher.in_stock and not (has_started and self._dispatcher.pause is None):
            with self._lock:
                self._announce()

    def shut(self) -> None:
        """Starts nothing more."""
        # Without the lock: the garbage collector may be what closes, anywhere.
        self._closing = True
        with suppress(IndexError):
            while True:
                self._idle.pop().hand(None)
        if self._reader is not None:
            self._reader.close()

    def leave_input(self) -> None:
        """Lets an item that is being read come, after `shut`: whoever has the input may go on."""
        reader = self._reader
        if reader is not None and reader.is_alive() and reader is not threading.current_thread():
            reader.join(READ_SECONDS)

    def launch(self, attempt: Outcome) -> None:
        """Starts an item that came from elsewhere than the dispatcher's own input."""
        with self._lock:
            thread = self._slot(attempt)
        self._start(thread)

    def collected(self) -> None:
        """What had finished has been taken."""
        self._announced = False

    def all_sleep(self) -> bool:
        """Whether those that run do nothing but sleep."""
        with self._lock:
            threads = list(self._running.values())
        # When some have ended others are about to begin.
        return threads_sleep(threads, all_at_once=self._dispatcher.progress[1] == 0)

    def wait_for_all(self) -> None:
        """Comes back when no thread runs an item but the abandoned ones, after `shut`."""
        while True:
            left = self.abandon_overdue()
            with self._lock:
                thread = next(iter(self._running.values()), None)
            if thread is None:
                self.leave_input()
                return
            if thread.ident is None:
                time.sleep(0.001)  # somebody is about to start it
            else:
                thread.join(LONGEST_SECONDS if left is None else min(left, LONGEST_SECONDS))

    def abandon_overdue(self) -> float | None:
        """Gives up what should have ended by now; gives the seconds until the next should have."""
        late = self._lateness()
        while True:
            with self._lock:
                left, following = self._abandon_first(late)
                thread = None if following is None else self._slot(following)
            if thread is None:
                self._look_at = None if left is None else time.monotonic() + left
                return left
            self._start(thread)

    def _lateness(self) -> float:
        """By how much later this is called than it was to be.

        What kept the caller - a machine that is busy with other things or stands still, the GIL -
        may have kept from its end an item that has got what it waited for.
        """
        late = 0.0 if self._look_at is None else time.monotonic() - self._look_at
        return late if late > LATE_SECONDS else 0.0

    def _abandon_first(self, late: float) -> tuple[float | None, Outcome | None]:
        """In how many seconds to look again; what runs in the place of one that was overdue."""
        now = time.monotonic()
        kept: list[_Deadline] = []
        try:
            while self._deadlines:
                entry = deadline, attempt, thread, _ = self._deadlines[0]
                # One that has returned only waits for the GIL, or for the lock, to say so.
                if self._is_running(entry) and not thread.returned:
                    if deadline > now:
                        break
                    if self._is_kept(thread, now - deadline):
                        kept.append(self._deadlines.popleft())
                        continue
                    if late and now - deadline < (self._timeout or 0.0):
                        # As much time again, but never more than twice the item's own.
                        return late, None
                    del self._running[attempt]
                    error = TimeoutError(f"not done within {self._timeout} s; its thread goes on")
                    following = self._dispatcher.failed(attempt, error, abandoned=True)
                    self._announce()
                    if following is not None:
                        return None, following
                self._deadlines.popleft()
            if kept:
                return LOOK_AGAIN_SECONDS, None
            return (self._deadlines[0][0] - now if self._deadlines else None), None
        finally:
            self._deadlines.extendleft(reversed(kept))

    def _is_kept(self, thread: "_Slot", overdue: float) -> bool:
        """Whether it has got what its function waited for, and only waits to go on."""
        timeout = self._timeout or 0.0
        if overdue > KEPT_TIMES * timeout:
            return False
        used = kept_waiting(thread.native_id or 0)
        return used is not None and used - thread.used_before < KEPT_SHARE * timeout * 1e9

    def _open_one(self) -> bool:
        """Starts an item, if one may start now."""
        with self._lock:
            if self._closing or self._unstarted or (attempt := self._next()) is None:
                return False
            # Whoever closes, without the lock, may take the last one first.
            with suppress(IndexError):
                thread = self._idle.pop()
                self._give(attempt, thread)
                thread.hand(attempt)
                return True
            thread = self._slot(attempt)
        self._start(thread)
        return True

    def _next(self) -> Outcome | None:
        attempt = self._dispatcher.next()
        if self._reader is not None:
            self._reader.taken()
        return attempt

    def _slot(self, attempt: Outcome) -> "_Slot":
        thread = _Slot(self, attempt, next(self._numbers))
        self._give(attempt, thread)
        return thread

    def _start(self, thread: "_Slot") -> None:
        """Without the lock: a thread takes its time to start, and items end meanwhile."""
        try:
            thread.start()
        except RuntimeError:
            # The system gives no more threads: those that there are do the rest.
            with self._lock:
                attempt = thread.attempt
                assert attempt is not None, "it has not started"
                del self._running[attempt]
                if not self._running:
                    error = RuntimeError(_NO_THREAD)
                    self._dispatcher.failed(attempt, error)
                    self._announce()
                    return
                self._dispatcher.lower_limit(len(self._running))
                self._unstarted.append(attempt)

    def _give(self, attempt: Outcome, thread: "_Slot") -> None:
        self._running[attempt] = thread
        thread.number = attempt.attempts
        thread.returned = False

    def _watch(self, attempt: Outcome, thread: "_Slot", timeout: float) -> None:
        """An attempt begins, and its time: what the thread took to start is not the item's."""
        with self._lock:
            if not self._deadlines:
                self._announce()  # whoever waits does not know how long yet
            deadline = time.monotonic() + timeout
            thread.used_before = time.thread_time_ns()
            self._deadlines.append((deadline, attempt, thread, thread.number))
            if len(self._deadlines) > 2 * len(self._running) + 1000:
                self._deadlines = deque(filter(self._is_running, self._deadlines))

    def _is_running(self, entry: "_Deadline") -> bool:
        """Whether it is still the same attempt of the item, and in the same thread."""
        _, attempt, thread, number = entry
        return self._running.get(attempt) is thread and thread.number == number

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            self._arrived()

    def run(self, attempt: Outcome, thread: "_Slot") -> Outcome | None:
        """Runs an item; gives the next one for this thread."""
        value: Any = None
        error: BaseException | None
        if self._timeout is not None:
            self._watch(attempt, thread, self._timeout)
        try:
            # As in asyncio.to_thread, and what an item sets is seen by no other.
            value = self._context.copy().run(self._fn, attempt.item)
        except BaseException as raised:  # SystemExit, too, is only this item's end
            error = raised
        else:
            error = _refused(value)
        thread.returned = True
        with self._lock:
            if self._running.get(attempt) is not thread:
                return None  # abandoned meanwhile, and perhaps tried again
            del self._running[attempt]
            if error is None:
                following = self._dispatcher.succeeded(attempt, value)
            else:
                following = self._dispatcher.failed(attempt, error)
            if self._reader is not None:
                self._reader.taken()
            if following is None and self._unstarted:
                following = self._unstarted.popleft()
            waits = following is None and self._waits(thread)
            if following is not None:
                self._give(following, thread)
            may_open = following is not None and self._dispatcher.room > 0
            self._announce()
        if may_open:
            self._open_one()
        return thread.wait_for_item() if waits else following

    def _waits(self, thread: "_Slot") -> bool:
        """Whether a thread is to wait for an item, because the reader may bring one."""
        if self._closing or self._reader is None or not self._reader.is_alive():
            return False
        self._idle.append(thread)
        if self._closing:
            # Whoever closes has handed it its end, or has not seen it.
            with suppress(ValueError):
                self._idle.remove(thread)
                return False
        return True


def _start_reader(reader: Reader) -> None:
    try:
        reader.start()
    except RuntimeError:
        raise RuntimeError(_NO_THREAD) from None


def _refused(value: Any) -> TypeError | None:
    if type(value) is not CoroutineType:
        return None
    value.close()
    return TypeError(
        "the function returned a coroutine, which a thread cannot run: "
        'make it an async def, or pass mode="asyncio"'
    )


class _Slot(threading.Thread):
    """Daemonic, as an abandoned one must not keep the program from its end."""

    def __init__(self, slots: Slots, attempt: Outcome, number: int) -> None:
        super().__init__(name=f"fanout-{number}", daemon=True)
        self._slots = slots
        self.attempt: Outcome | None = attempt
        self.number = 0  # of the attempt
        self.returned = False  # its function
        self.used_before = 0  # of a processor, ns
        self._handed: SimpleQueue[Outcome | None] = SimpleQueue()

    def hand(self, attempt: Outcome | None) -> None:
        """An item for one that waits for it; None: it ends."""
        self._handed.put(attempt)

    def wait_for_item(self) -> Outcome | None:
        """What it is handed."""
        return self._handed.get()

    def run(self) -> None:
        while self.attempt is not None:
            self.attempt = self._slots.run(self.attempt, self)
