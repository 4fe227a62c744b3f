"""Mode `asyncio`: items as tasks of an event loop.

A slot is one task, which runs one item after the other; so there is a task for each item that runs
at once, not for each item. What it runs is a `Slot`, which drives the items itself and asks here
for what is rare. Timeouts share one timer, as they all take equally long.
"""

import asyncio
import functools
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import isawaitable
from typing import Any, cast

from ungil import _native
from ungil._native import Dispatcher, Outcome, Slot
from ungil.fanout._asleep import coroutines_sleep
from ungil.fanout._failures import cut_off
from ungil.fanout._mode import is_async, is_patched, name_of

# How long finished items are gathered before they are handed out: waking up costs.
BATCH_SECONDS = 0.01

# How many turns of the loop what ended while it came late has to say so: uvloop looks at timers
# before descriptors, and what a descriptor wakes runs in the turn after that.
TURNS = 3

# How many threads what a coroutine sends to threads has at most with limit="auto".
MOST_THREADS = 200

# How long a coroutine that was cancelled may take to end, before it is left to itself.
GRACE_SECONDS = 1.0

Task = asyncio.Task[None]
# A slot is a coroutine in all but its class.
_task: Callable[..., Task] = Task
if sys.version_info >= (3, 12):
    # It begins here and now, which saves a turn of the loop.
    _task = functools.partial(Task, eager_start=True)


class Slots(_native.Slots):
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
        self._loop = loop
        self._dispatcher = dispatcher
        self._timeout = timeout
        self._arrived = arrived
        self._tasks: list[Task] = []
        self._deadlines: deque[tuple[float, Outcome, int, Task]] = deque()
        # The number of the attempt that runs, only of those that can time out. One that was given
        # up may go on while the next of the same item runs.
        self._running: dict[Outcome, int] = {}
        self._overdue: set[Outcome] = set()
        self._sweep: asyncio.Handle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._resumes_at = 0.0
        self._announcement: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()

    def open(self) -> None:
        """Starts whatever may start now."""
        if self.closing:
            return
        dispatcher = self._dispatcher
        while (attempt := dispatcher.next()) is not None:
            self._launch(attempt)
        if dispatcher.ready and not self.announced:
            self.announce()  # of an earlier run
        self._look_soon()
        self.rest()

    def _look_soon(self) -> None:
        if self._dispatcher.in_the_dark:
            self._loop.call_soon(self._look)  # when all that run have begun

    def _look(self) -> None:
        """Starts all others at once if those that run only sleep."""
        coroutines = (task.get_coro() for task in self._tasks)
        if self._dispatcher.in_the_dark and coroutines_sleep(coroutines):
            self._dispatcher.asleep()
            self.open()
            if self.waited_for:
                self.closed()

    def open_soon(self) -> None:
        """Starts what may start, when those that run now have had their turn."""
        self._loop.call_soon(self.open)

    def launch(self, attempt: Outcome) -> None:
        """Starts an item that came from elsewhere than the dispatcher's own input."""
        self._launch(attempt)
        self._look_soon()

    def collected(self) -> None:
        """What had finished has been taken."""
        self.announced = False

    async def has_room(self) -> None:
        """Comes back when a slot has closed."""
        self._room.clear()
        self.waited_for = True
        await self._room.wait()

    def closed(self) -> None:
        """A slot has closed, for which somebody has waited."""
        self.waited_for = False
        self._room.set()

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
        # The others are let go of: all_tasks() and the collector would look at each again.
        self._tasks = [task for task in self._tasks if not task.done()]
        for task in self._tasks:
            task.cancel()
        await self._all_ended()

    async def _all_ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE_SECONDS)

    def _launch(self, attempt: Outcome) -> None:
        # The loop itself keeps no task alive.
        self._tasks.append(_task(Slot(self, attempt), loop=self._loop))
        if len(self._tasks) > 2 * self._dispatcher.running + 1000:
            self._tasks = [task for task in self._tasks if not task.done()]

    def rest(self) -> None:
        """Nothing may start now: come back in time, or say so if nothing runs either."""
        dispatcher = self._dispatcher
        pause = None if dispatcher.ended else dispatcher.pause
        if pause is not None:
            self._come_back(self._loop.time() + pause)
        elif dispatcher.ended or (dispatcher.ready and not dispatcher.running):
            self.announced = True
            self._arrived()

    def _come_back(self, due: float) -> None:
        if self._pause is not None:
            if self._resumes_at <= due:
                return
            self._pause.cancel()
        self._resumes_at = due
        self._pause = self._loop.call_at(due, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self.open()

    def announce(self) -> None:
        """Something has finished: say so soon."""
        self.announced = True
        due = self._loop.time() + BATCH_SECONDS
        self._announcement = self._loop.call_at(due, self._arrive, due)

    def _arrive(self, due: float) -> None:
        self._dispatcher.lagged(self._loop.time() - due)
        self._arrived()

    def _is_abandoned(self, attempt: Outcome, number: int) -> bool:
        return self._timeout is not None and self._running.get(attempt) != number

    def _ended(self, attempt: Outcome) -> bool:
        """The attempt runs no longer; whether its time was over."""
        self._running.pop(attempt, None)
        was_overdue = attempt in self._overdue
        self._overdue.discard(attempt)
        return was_overdue

    def raised(self, attempt: Outcome, number: int, error: BaseException) -> Outcome | None:
        """An attempt has ended by an exception. What runs in its place."""
        if isinstance(error, asyncio.CancelledError):
            return self._cancelled(attempt, number, error)
        if isinstance(error, KeyboardInterrupt):
            self._dispatcher.failed(attempt, cut_off(error))
            # An eager task's creation is interrupted as well: nobody else knows it.
            self._tasks.append(cast(Task, asyncio.current_task()))
            raise error
        if self._is_abandoned(attempt, number):
            return None
        if self._ended(attempt):  # what it raises because it was cancelled
            overdue = self._timed_out()
            overdue.__cause__ = error
            error = overdue
        return self._dispatcher.failed(attempt, error)

    def watch(self, attempt: Outcome) -> int:
        """An attempt begins, which has to end in time; its number."""
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        assert self._timeout is not None, "else nothing is watched"
        number = self._running[attempt] = attempt.attempts
        deadlines = self._deadlines
        deadlines.append((self._loop.time() + self._timeout, attempt, number, task))
        # Those that ended in time leave when the first does, or when they are most of all.
        if len(deadlines) > 2 * len(self._running) + 1000:
            running = self._running
            self._deadlines = deque(it for it in deadlines if running.get(it[1]) == it[2])
        if self._sweep is None:
            self._sweep = self._loop.call_at(self._deadlines[0][0], self._cancel_soon, TURNS)
        return number

    def _cancel_soon(self, turns: int) -> None:
        """A loop that comes late lets what is ready go on before anybody's time is over."""
        if turns:
            self._sweep = self._loop.call_soon(self._cancel_soon, turns - 1)
        else:
            self._cancel_overdue()

    def _cancel_overdue(self) -> None:
        self._sweep = None
        now = self._loop.time()
        deadlines = self._deadlines
        while deadlines:
            deadline, attempt, number, task = deadlines[0]
            if self._running.get(attempt) == number:
                if deadline > now:
                    self._sweep = self._loop.call_at(deadline, self._cancel_soon, TURNS)
                    return
                self._overdue.add(attempt)
                task.cancel()
                self._loop.call_later(GRACE_SECONDS, self._abandon, attempt, number)
            deadlines.popleft()

    def _abandon(self, attempt: Outcome, number: int) -> None:
        """A coroutine goes on although it was cancelled: its item is done, and it runs beside."""
        if not self._is_abandoned(attempt, number):
            self._ended(attempt)
            following = self._dispatcher.failed(attempt, self._timed_out(), abandoned=True)
            if not self.announced:
                self.announce()
            if following is not None:
                self._launch(following)

    def returned(self, attempt: Outcome, number: int, value: Any) -> Outcome | None:
        """An attempt that is watched has ended well. What runs in its place."""
        if self._is_abandoned(attempt, number):
            return None
        if self._ended(attempt):  # it has caught the cancellation, and returned
            return self._dispatcher.failed(attempt, self._timed_out())
        return self._dispatcher.succeeded(attempt, value)

    def _cancelled(
        self, attempt: Outcome, number: int, error: asyncio.CancelledError
    ) -> Outcome | None:
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        if self._is_abandoned(attempt, number):
            return None
        if self._ended(attempt):
            task.uncancel()
            return self._dispatcher.failed(attempt, self._timed_out())
        if self.closing:
            self._dispatcher.failed(attempt, cut_off(error))
            raise error
        # By the function itself, or by one who cancels all tasks there are: the slot goes on.
        while task.cancelling():
            task.uncancel()
        return self._dispatcher.failed(attempt, error)

    def _timed_out(self) -> TimeoutError:
        return TimeoutError(f"not done within {self._timeout} s")


def awaiting(fn: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """`fn` as an `async def`, which awaits what it returns."""
    if is_async(fn):
        return fn

    async def call(item: Any) -> Any:
        returned = fn(item)
        if not isawaitable(returned):
            raise TypeError(
                f"{name_of(fn)} returned {returned!r}, which asyncio cannot await: make it an "
                'async def, or use mode="threads"'
            )
        return await returned

    return call


class Loop:
    """A loop of its own for a caller that has none: uvloop's where it is installed.

    What is sent to its threads (`asyncio.to_thread`) does not wait for one: it has as many as items
    run at once, at most `MOST_THREADS` where that is not known.
    """

    def __init__(
        self,
        fn: Callable[[Any], Coroutine[Any, Any, Any]],
        dispatcher: Dispatcher,
        timeout: float | None,
        limit: "int | str",
    ) -> None:
        self._dispatcher = dispatcher
        self._loop, self.name = new_loop()
        threads = limit if isinstance(limit, int) else MOST_THREADS
        self._loop.set_default_executor(ThreadPoolExecutor(threads))
        self._slots = Slots(self._loop, fn, dispatcher, timeout, self._stop)
        self._stopping = True

    def advance(self) -> None:
        """Runs until something has finished."""
        self._slots.collected()
        self._stopping = False
        self._loop.call_soon(self._slots.open)
        # asyncio ends its loop by the SystemExit of any task, also of the functions' own. It is the
        # end of that task, and those who await it are told.
        with suppress(SystemExit):
            self._loop.run_forever()

    def _stop(self) -> None:
        """Once only: uvloop would keep a second stop for the next time it runs, and close() end."""
        if not self._stopping:
            self._stopping = True
            self._loop.stop()

    def wake(self) -> None:
        """Lets `advance` come back soon."""
        self._loop.call_soon_threadsafe(self._stop)

    def close(self, *, wait: bool = True) -> None:
        """Cancels what runs, which never takes long."""
        self._stopping = True
        ending = self._loop.create_task(self._end())
        try:
            while not ending.done():
                self._complete(ending)
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

    def _complete(self, task: Task) -> None:
        try:
            self._loop.run_until_complete(task)
        except RuntimeError:
            # uvloop keeps a stop that came when it was ending by an exception.
            if task.done() or self._loop.is_running():
                raise


def new_loop() -> tuple[asyncio.AbstractEventLoop, str]:
    """A loop, and how it is called: uvloop's, unless green threads would wait while it does."""
    if is_patched():
        return asyncio.new_event_loop(), "asyncio's own loop"
    try:
        import uvloop  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return asyncio.new_event_loop(), "asyncio's own loop"
    return uvloop.new_event_loop(), "uvloop"
