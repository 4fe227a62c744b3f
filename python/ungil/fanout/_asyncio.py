"""Mode `asyncio`: items as tasks of an event loop.

A slot is one task, which runs one item after the other; so there is a task for each item that runs
at once, not for each item. Time-outs share one timer, as they all take equally long.
"""

import asyncio
import functools
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ungil._native import Dispatcher, Outcome

# How long finished items are gathered before they are handed out: waking up costs.
BATCH_SECONDS = 0.01

# How long a coroutine that was cancelled may take to end, before it is left to itself.
GRACE_SECONDS = 1.0

Task = asyncio.Task[None]
if sys.version_info >= (3, 12):
    # It begins here and now, which saves a turn of the loop.
    _task = functools.partial(Task, eager_start=True)
else:
    _task = Task


class Slots:
    """The tasks of one fan-out in a loop that runs.

    `arrived` is called when something may have finished, at most once until `collected`.
    """

    is_full = False  # whatever the dispatcher lets start can start

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fn: Callable[[Any], Coroutine[Any, Any, Any]],
        dispatcher: Dispatcher,
        timeout: float | None,
        arrived: Callable[[], None],
    ) -> None:
        self._waits_for_time = dispatcher.waits_for_time
        self._loop = loop
        self._fn = fn
        self._dispatcher = dispatcher
        self._timeout = timeout
        self._arrived = arrived
        self._announced = False
        self._tasks: list[Task] = []
        self._deadlines: deque[tuple[float, Outcome, Task]] = deque()
        self._running: set[Outcome] = set()  # only of those that can time out
        self._overdue: set[Outcome] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._announcement: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self.closing = False

    def open(self) -> None:
        """Starts whatever may start now."""
        if self.closing:
            return
        dispatcher = self._dispatcher
        while (attempt := dispatcher.next()) is not None:
            self._launch(attempt)
        self._rest()

    def launch(self, attempt: Outcome) -> None:
        """Starts an item that came from elsewhere than the dispatcher's own input."""
        self._launch(attempt)

    def collected(self) -> None:
        """What had finished has been taken."""
        self._announced = False

    async def has_room(self) -> None:
        """Comes back when a slot has closed."""
        self._room.clear()
        await self._room.wait()

    async def close(self) -> None:
        """Cancels what runs, and waits for it. Doing it twice would also cancel the cleaning up."""
        if self.closing:
            await self._all_ended()
            return
        self.closing = True
        for timer in (self._sweep, self._pause, self._announcement):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.exception()  # a Ctrl-C, which was raised, and need not be logged as well
            task.cancel()
        await self._all_ended()

    async def _all_ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE_SECONDS)

    def _launch(self, attempt: Outcome) -> None:
        # The loop itself keeps no task alive.
        self._tasks.append(_task(self._slot(attempt), loop=self._loop))
        if len(self._tasks) > 2 * self._dispatcher.running + 1000:
            self._tasks = [task for task in self._tasks if not task.done()]

    def _rest(self) -> None:
        """Nothing may start now: come back in time, or say so if nothing runs either."""
        dispatcher = self._dispatcher
        pause = dispatcher.pause
        if pause is not None:
            if self._pause is None:
                self._pause = self._loop.call_later(pause, self._resume)
        elif dispatcher.ended or (dispatcher.ready and not dispatcher.running):
            self._announced = True
            self._arrived()

    def _resume(self) -> None:
        self._pause = None
        self.open()

    def _announce(self) -> None:
        self._announced = True
        due = self._loop.time() + BATCH_SECONDS
        self._announcement = self._loop.call_at(due, self._arrive, due)

    def _arrive(self, due: float) -> None:
        self._dispatcher.lagged(self._loop.time() - due)
        self._arrived()

    async def _slot(self, first: Outcome) -> None:
        attempt: Outcome | None = first
        fn, dispatcher, timeout = self._fn, self._dispatcher, self._timeout
        try:
            while attempt is not None:
                if timeout is not None:
                    self._watch(attempt, timeout)
                try:
                    value = await fn(attempt.item)
                except asyncio.CancelledError as error:
                    attempt = self._cancelled(attempt, error)
                except KeyboardInterrupt as error:
                    dispatcher.failed(attempt, error)
                    # An eager task's creation is interrupted as well: nobody else knows it.
                    self._tasks.append(cast(Task, asyncio.current_task()))
                    raise
                except BaseException as error:
                    attempt = self._failed(attempt, error)
                else:
                    if timeout is None:
                        attempt = dispatcher.succeeded(attempt, value)
                    else:
                        attempt = self._in_time(attempt, value)
                if not self._announced:
                    self._announce()
                if attempt is not None and dispatcher.room:
                    self._loop.call_soon(self.open)
        except Exception as error:
            # Of `group` or `retry_if`, which are the caller's: it goes to whoever consumes.
            dispatcher.close(error)
        if not self.closing and (self._waits_for_time or not dispatcher.running):
            self._rest()
        self._room.set()

    def _failed(self, attempt: Outcome, error: BaseException) -> Outcome | None:
        self._running.discard(attempt)
        return self._dispatcher.failed(attempt, error)

    def _watch(self, attempt: Outcome, timeout: float) -> None:
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        self._running.add(attempt)
        deadlines = self._deadlines
        deadlines.append((self._loop.time() + timeout, attempt, task))
        # Those that ended in time leave when the first does, or when they are most of all.
        if len(deadlines) > 2 * len(self._running) + 1000:
            self._deadlines = deque(entry for entry in deadlines if entry[1] in self._running)
        if self._sweep is None:
            self._sweep = self._loop.call_at(self._deadlines[0][0], self._cancel_overdue)

    def _cancel_overdue(self) -> None:
        self._sweep = None
        now = self._loop.time()
        deadlines = self._deadlines
        while deadlines:
            deadline, attempt, task = deadlines[0]
            if attempt in self._running:
                if deadline > now:
                    self._sweep = self._loop.call_at(deadline, self._cancel_overdue)
                    return
                self._overdue.add(attempt)
                task.cancel()
                self._loop.call_later(GRACE_SECONDS, self._abandon, attempt)
            deadlines.popleft()

    def _abandon(self, attempt: Outcome) -> None:
        """A coroutine goes on although it was cancelled: its item is done, and it runs beside."""
        if attempt in self._overdue:
            self._running.discard(attempt)
            self._overdue.discard(attempt)
            following = self._dispatcher.failed(attempt, self._timed_out(), abandoned=True)
            if not self._announced:
                self._announce()
            if following is not None:
                self._launch(following)

    def _in_time(self, attempt: Outcome, value: Any) -> Outcome | None:
        if attempt not in self._running:
            return None  # abandoned
        self._running.discard(attempt)
        if attempt in self._overdue:  # it has caught the cancellation, and returned
            self._overdue.discard(attempt)
            return self._dispatcher.failed(attempt, self._timed_out())
        return self._dispatcher.succeeded(attempt, value)

    def _cancelled(self, attempt: Outcome, error: asyncio.CancelledError) -> Outcome | None:
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        if attempt in self._overdue:
            self._overdue.discard(attempt)
            self._running.discard(attempt)
            task.uncancel()
            return self._dispatcher.failed(attempt, self._timed_out())
        if self._timeout is not None and attempt not in self._running:
            return None  # abandoned
        if self.closing:
            self._dispatcher.failed(attempt, error)
            raise error
        # By the function itself, or by one who cancels all tasks there are: the slot goes on.
        while task.cancelling():
            task.uncancel()
        return self._failed(attempt, error)

    def _timed_out(self) -> TimeoutError:
        return TimeoutError(f"not done within {self._timeout} s")


class Loop:
    """A loop of its own for a caller that has none: uvloop's where it is installed."""

    def __init__(
        self,
        fn: Callable[[Any], Coroutine[Any, Any, Any]],
        dispatcher: Dispatcher,
        timeout: float | None,
    ) -> None:
        self._dispatcher = dispatcher
        self._loop, self.name = new_loop()
        self._slots = Slots(self._loop, fn, dispatcher, timeout, self._stop)
        self._stopping = True

    def advance(self) -> None:
        """Runs until something has finished."""
        self._slots.collected()
        self._stopping = False
        self._loop.call_soon(self._slots.open)
        self._loop.run_forever()

    def _stop(self) -> None:
        """Once only: uvloop would keep a second stop for the next time it runs, and close() end."""
        if not self._stopping:
            self._stopping = True
            self._loop.stop()

    def close(self) -> None:
        """Cancels what runs."""
        self._stopping = True
        try:
            self._loop.run_until_complete(self._end())
        finally:
            # It waits for no thread of its executor: that may take as long as the thread likes.
            self._loop.close()

    async def _end(self) -> None:
        await self._slots.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:  # the functions' own, which they did not wait for
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE_SECONDS)
        await self._loop.shutdown_asyncgens()


def new_loop() -> tuple[asyncio.AbstractEventLoop, str]:
    try:
        import uvloop  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return asyncio.new_event_loop(), "asyncio's own loop"
    return uvloop.new_event_loop(), "uvloop"
