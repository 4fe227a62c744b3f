"""Mode `green`: items as calls in gevent's green threads.

A slot is one greenlet, which runs one item after the other. It is a plain one and not of gevent's
own class: nobody joins it, links to it or asks it for a value, and so it costs half as much.

The input, `group` and `retry_if` are the user's, and may themselves wait. So one greenlet at a time
asks the dispatcher, and never the hub, which cannot wait.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ungil._native import Dispatcher, Outcome

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


class Green:
    """For a caller in any greenlet of a program that gevent has patched."""

    name = "gevent"

    def __init__(
        self, fn: Callable[[Any], Any], dispatcher: Dispatcher, timeout: float | None
    ) -> None:
        if not monkey.is_module_patched("socket"):
            raise RuntimeError(
                'mode="green" needs a program that gevent has patched: make '
                "`from gevent import monkey; monkey.patch_all()` the first line of "
                f"{getattr(sys.modules['__main__'], '__file__', 'the program')}, "
                "before everything that it imports"
            )
        self._fn = fn
        self._dispatcher = dispatcher
        self._timeout = timeout
        self._hub = get_hub()
        self._loop = self._hub.loop
        self._asking = Semaphore(1)
        self._slots: set[greenlet] = set()
        self._running: set[Outcome] = set()  # only of those that can time out
        self._deadlines: deque[tuple[float, Outcome, greenlet]] = deque()
        self._overdue: set[Outcome] = set()
        self._caller: Waiter[None] | None = None
        self._announced = False
        self._pausing = False
        self._sweeping = False
        self._closing = False
        self._interrupt: KeyboardInterrupt | None = None

    def advance(self) -> None:
        """Runs until something has finished."""
        self._announced = False
        self._open()
        if self._slots or self._dispatcher.pause is not None:
            self._wait()
        if self._interrupt is not None:
            raise self._interrupt

    def close(self) -> None:
        """Ends what runs, and waits for it."""
        self._closing = True
        for slot in self._slots:
            self._loop.run_callback(slot.throw, GreenletExit)
        if self._slots:
            self._after(GRACE_SECONDS, self._wake)
            self._wait()

    def _wait(self) -> None:
        self._caller = Waiter(self._hub)
        try:
            self._caller.get()
        finally:
            self._caller = None

    def _wake(self) -> None:
        if self._caller is not None:
            self._caller.switch(None)

    def _after(self, seconds: float, function: Callable[..., None], *arguments: Any) -> None:
        """The hub calls the function then."""
        timer = self._loop.timer(seconds)
        timer.start(self._due, timer, function, arguments)

    def _due(self, timer: Any, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        timer.close()
        if not self._closing or function == self._wake:
            function(*arguments)

    def _aside(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls in a greenlet of its own what asks the dispatcher."""
        self._loop.run_callback(greenlet(function, self._hub).switch, *arguments)

    def _open(self) -> None:
        """Starts whatever may start now."""
        while not self._closing:
            with self._asking:
                attempt = self._dispatcher.next()
            if attempt is None:
                self._rest()
                return
            self._launch(attempt)

    def _launch(self, attempt: Outcome) -> None:
        slot = greenlet(self._run, self._hub)
        self._slots.add(slot)
        self._loop.run_callback(slot.switch, attempt)

    def _rest(self) -> None:
        """There is nothing to start: say so if that is all, else come back in time."""
        pause = self._dispatcher.pause
        if not self._slots and pause is None:
            self._announced = True
            self._loop.run_callback(self._wake)
        elif not self._pausing and pause is not None:
            self._pausing = True
            self._after(pause, self._resume)

    def _resume(self) -> None:
        self._pausing = False
        self._aside(self._open)

    def _run(self, first: Outcome) -> None:
        """The life of a slot."""
        attempt: Outcome | None = first
        try:
            while attempt is not None and not self._closing:
                attempt = self._run_one(attempt)
        except KeyboardInterrupt as error:
            self._interrupt = error
            self._loop.run_callback(self._wake)
        except BaseException as error:
            # Of the input, of `group` or of `retry_if`: it goes to whoever consumes.
            self._dispatcher.close(error)
        finally:
            self._slots.discard(getcurrent())
            self._rest()

    def _run_one(self, attempt: Outcome) -> Outcome | None:
        if self._timeout is not None:
            self._watch(attempt, self._timeout)
        try:
            value = self._fn(attempt.item)
            if type(value) is CoroutineType:
                value.close()
                raise TypeError(
                    "the function has returned a coroutine, which a green thread cannot run: "
                    'make it an async def, or pass mode="asyncio"'
                )
        except KeyboardInterrupt as error:
            self._dispatcher.failed(attempt, error)
            raise
        except BaseException as error:  # SystemExit, too, is only this item's end
            return self._failed(attempt, error)
        if self._timeout is not None:
            if attempt in self._overdue:  # it has caught what ended it, and returned
                return self._failed(attempt, self._timed_out())
            if attempt not in self._running:
                return None  # abandoned
            self._running.discard(attempt)
        with self._asking:
            return self._ended(self._dispatcher.succeeded(attempt, value))

    def _failed(self, attempt: Outcome, error: BaseException) -> Outcome | None:
        if self._timeout is not None:
            if attempt not in self._running:
                return None  # abandoned
            self._running.discard(attempt)
            if attempt in self._overdue:
                self._overdue.discard(attempt)
                error = self._timed_out()
        with self._asking:
            return self._ended(self._dispatcher.failed(attempt, error))

    def _ended(self, following: Outcome | None) -> Outcome | None:
        if not self._announced:
            self._announced = True
            self._after(BATCH_SECONDS, self._wake)
        if following is not None and self._dispatcher.room:
            self._aside(self._open)
        return following

    def _watch(self, attempt: Outcome, timeout: float) -> None:
        self._running.add(attempt)
        deadlines = self._deadlines
        deadlines.append((time.monotonic() + timeout, attempt, getcurrent()))
        # Those that ended in time leave when the first does, or when they are most of all.
        if len(deadlines) > 2 * len(self._running) + 1000:
            self._deadlines = deque(entry for entry in deadlines if entry[1] in self._running)
        if not self._sweeping:
            self._sweeping = True
            self._after(timeout, self._end_overdue)

    def _end_overdue(self) -> None:
        self._sweeping = False
        now = time.monotonic()
        deadlines = self._deadlines
        ended: list[Outcome] = []
        while deadlines:
            deadline, attempt, slot = deadlines[0]
            if attempt in self._running:
                if deadline > now:
                    self._sweeping = True
                    self._after(deadline - now, self._end_overdue)
                    break
                self._overdue.add(attempt)
                ended.append(attempt)
                self._loop.run_callback(slot.throw, GreenletExit)
            deadlines.popleft()
        if ended:
            self._after(GRACE_SECONDS, self._aside, self._abandon, ended)

    def _abandon(self, ended: list[Outcome]) -> None:
        """Green threads go on although they were ended: their items are done, they run beside."""
        for attempt in ended:
            if attempt in self._overdue:
                self._overdue.discard(attempt)
                self._running.discard(attempt)
                with self._asking:
                    following = self._dispatcher.failed(attempt, self._timed_out(), abandoned=True)
                if (following := self._ended(following)) is not None:
                    self._launch(following)

    def _timed_out(self) -> TimeoutError:
        return TimeoutError(f"not done within {self._timeout} s")
