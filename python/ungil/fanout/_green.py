"""Mode `green`: items as calls in gevent's green threads.

A slot is one greenlet, which runs one item after the other. It is a plain one, not of gevent's own
class: nobody joins it, links to it or asks it for a value.

The input, `group` and `retry_if` are the user's, and may wait for something. So the dispatcher is
asked by one greenlet at a time, and never by the hub, which cannot wait.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from types import CoroutineType
from typing import Any

from ungil._native import Dispatcher, Outcome
from ungil.fanout._failures import cut_off

try:
    from gevent import monkey
    from gevent.hub import Waiter, get_hub
    from gevent.lock import Semaphore
    from greenlet import GreenletExit, getcurrent, greenlet
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        'mode="green" needs gevent: pip install "ungil[green]"', name=missing.name
    ) from None

# How long finished items are gathered before they are handed out: waking up costs.
BATCH_SECONDS = 0.01

# How long a green thread that was ended may take to end, before it is left to itself.
GRACE_SECONDS = 1.0

# A signal that comes when the hub is about to wait does not end the wait. So none is longer, and
# Ctrl-C later than that once in a blue moon.
LONGEST_SECONDS = 1.0


class Green:
    """For a caller in any greenlet of a program that gevent has patched."""

    name = "gevent"

    def __init__(
        self, fn: Callable[[Any], Any], dispatcher: Dispatcher, timeout: float | None
    ) -> None:
        if not monkey.is_module_patched("socket"):
            program = getattr(sys.modules["__main__"], "__file__", None) or "the program"
            raise RuntimeError(
                'mode="green" needs a program that gevent has patched: write '
                "`from gevent import monkey; monkey.patch_all()` as the first line of "
                f"{program}, before all other imports"
            )
        self._fn = fn
        self._context = copy_context()
        self._dispatcher = dispatcher
        self._timeout = timeout
        self._waits_for_time = dispatcher.waits_for_time
        self._hub = get_hub()
        self._asking = Semaphore(1)
        self._slots: set[greenlet] = set()
        # The number of the attempt that runs, only of those that can time out. One that was given
        # up may go on while the next of the same item runs.
        self._running: dict[Outcome, int] = {}
        self._deadlines: deque[tuple[float, Outcome, int, greenlet]] = deque()
        self._overdue: dict[Outcome, tuple[float, greenlet]] = {}
        self._caller: Waiter[None] | None = None
        self._error: BaseException | None = None
        self._batch: Any = None
        self._due = 0.0
        self._sweep: Any = None
        self._woken = False
        self._closing = False

    def advance(self) -> None:
        """Runs until something has finished."""
        grace = self._abandon_stubborn()
        while (attempt := self._ask(self._dispatcher.next)) is not None:
            self._launch(attempt)
        pause = self._dispatcher.pause if self._waits_for_time else None
        if self._error is None and (self._slots or pause is not None):
            self._wait(min((s for s in (grace, pause) if s is not None), default=None))
        if self._error is not None:
            raise self._error

    def wake(self) -> None:
        """Lets `advance` come back soon."""
        self._hub.loop.run_callback_threadsafe(self._wake)

    def close(self, *, wait: bool = True) -> None:
        """Ends what runs, which never takes long."""
        self._closing = True
        for timer in (self._batch, self._sweep):
            if timer is not None:
                timer.close()
        for slot in self._slots:
            self._hub.loop.run_callback(_end, slot)
        # The garbage collector may be what closes, anywhere.
        if self._slots and getcurrent() is not self._hub:
            self._wait(GRACE_SECONDS)

    def _ask(self, question: Callable[..., Outcome | None], *said: Any) -> Outcome | None:
        with self._asking:
            return question(*said)

    def _wait(self, seconds: float | None) -> None:
        self._caller = Waiter(self._hub)
        timer = self._after(LONGEST_SECONDS if seconds is None else seconds, self._wake)
        try:
            self._caller.get()
        finally:
            self._caller = None
            timer.close()

    def _wake(self) -> None:
        self._woken = False
        if self._caller is not None:
            self._caller.switch(None)

    def _wake_soon(self) -> None:
        """Wakes the caller, who starts what there is room for, from a greenlet that goes on."""
        if not self._woken:
            self._woken = True
            self._hub.loop.run_callback(self._wake)

    def _arrived(self) -> None:
        self._batch.close()
        self._batch = None
        self._dispatcher.lagged(time.monotonic() - self._due)
        self._wake()

    def _after(self, seconds: float, function: Callable[[], None]) -> Any:
        """A timer; the hub calls the function."""
        timer = self._hub.loop.timer(seconds)
        timer.start(function)
        return timer

    def _launch(self, attempt: Outcome) -> None:
        slot = greenlet(self._run, self._hub)
        self._slots.add(slot)
        self._hub.loop.run_callback(slot.switch, attempt)

    def _run(self, first: Outcome | None) -> None:
        """The life of a slot."""
        slot, attempt = getcurrent(), first
        try:
            while attempt is not None and not self._closing:
                # What an item sets is seen by no other.
                slot.gr_context = self._context.copy()
                attempt = self._run_one(attempt)
                if self._closing:
                    break
                if self._batch is None:
                    self._batch = self._after(BATCH_SECONDS, self._arrived)
                    self._due = time.monotonic() + BATCH_SECONDS
                if attempt is not None and self._dispatcher.room:
                    self._wake_soon()
        except BaseException as error:
            # Ctrl-C; or of `group` or `retry_if`, which are the caller's.
            self._error = error
        self._slots.discard(slot)
        if self._error is not None or not self._slots:
            self._wake_soon()

    def _run_one(self, attempt: Outcome) -> Outcome | None:
        """Runs an item; gives the next for this slot."""
        number = 0
        if self._timeout is not None:
            number = self._watch(attempt, self._timeout)
        try:
            value = self._fn(attempt.item)
            if type(value) is CoroutineType:
                value.close()
                raise TypeError(
                    "the function returned a coroutine, which a green thread cannot run: "
                    'make it an async def, or pass mode="asyncio"'
                )
        except KeyboardInterrupt as error:
            self._dispatcher.failed(attempt, cut_off(error))
            raise
        except BaseException as error:  # SystemExit, too, is only this item's end
            return self._failed(attempt, number, error)
        if self._timeout is not None:
            if self._running.get(attempt) != number:
                return None  # abandoned
            if attempt in self._overdue:  # it has caught what ended it, and returned
                return self._failed(attempt, number, GreenletExit())
            del self._running[attempt]
        with self._asking:
            return self._dispatcher.succeeded(attempt, value)

    def _failed(self, attempt: Outcome, number: int, error: BaseException) -> Outcome | None:
        if self._closing and isinstance(error, GreenletExit):
            error = cut_off(error)
        if self._timeout is not None:
            if self._running.get(attempt) != number:
                return None  # abandoned
            del self._running[attempt]
            if self._overdue.pop(attempt, None) is not None:
                error = self._timed_out()
        return self._ask(self._dispatcher.failed, attempt, error)

    def _watch(self, attempt: Outcome, timeout: float) -> int:
        running = self._running
        number = running[attempt] = attempt.attempts
        deadlines = self._deadlines
        deadlines.append((time.monotonic() + timeout, attempt, number, getcurrent()))
        # Those that ended in time leave when the first does, or when they are most of all.
        if len(deadlines) > 2 * len(running) + 1000:
            self._deadlines = deque(it for it in deadlines if running.get(it[1]) == it[2])
        if self._sweep is None:
            self._sweep = self._after(timeout, self._end_soon)
        return number

    def _end_soon(self) -> None:
        """A hub that comes late lets what is ready go on before anybody's time is over."""
        self._hub.loop.run_callback(self._end_overdue)

    def _end_overdue(self) -> None:
        """The hub calls it when the time of the longest running is over."""
        now = time.monotonic()
        deadlines, overdue, running = self._deadlines, self._overdue, self._running
        ended: list[greenlet] = []
        while deadlines:
            due, attempt, number, slot = deadlines[0]
            is_running = running.get(attempt) == number
            if is_running and due > now:
                break
            deadlines.popleft()
            if is_running:
                overdue[attempt] = now + GRACE_SECONDS, slot
                ended.append(slot)
        self._sweep.close()
        self._sweep = self._after(deadlines[0][0] - now, self._end_soon) if deadlines else None
        for slot in ended:
            _end(slot)
        if overdue:
            self._wake()  # to look after their grace

    def _abandon_stubborn(self) -> float | None:
        """Gives up green threads that go on although they were ended.

        Gives the seconds until there may be another one.
        """
        now = time.monotonic()
        for attempt, (until, slot) in list(self._overdue.items()):
            if until > now:
                return until - now
            del self._overdue[attempt]
            del self._running[attempt]
            self._slots.discard(slot)
            with self._asking:
                following = self._dispatcher.failed(attempt, self._timed_out(), abandoned=True)
            if following is not None:
                self._launch(following)
        return None

    def _timed_out(self) -> TimeoutError:
        return TimeoutError(f"not done within {self._timeout} s")


def _end(slot: greenlet) -> None:
    """Only the hub may call it: to it the green thread comes back."""
    if not slot.dead:
        slot.throw(GreenletExit)
