"""Mode `threads`, for a caller without an event loop: items as calls in threads."""

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from ungil._native import Dispatcher
from ungil.fanout._thread_slots import LONGEST_SECONDS, Slots

# How long finished items are gathered before they are handed out: waking up costs.
BATCH_SECONDS = 0.005

# After how long it is looked for the first time whether threads only sleep.
FIRST_LOOK_SECONDS = 0.0005


class Threads:
    """Waits for what threads have finished."""

    name = "threads"

    def __init__(
        self, fn: Callable[[Any], Any], dispatcher: Dispatcher, timeout: float | None
    ) -> None:
        self._dispatcher = dispatcher
        # Unlike a semaphore's, its `put` may be called in the handler of a signal.
        self._arrival: SimpleQueue[None] = SimpleQueue()
        self._slots = Slots(fn, dispatcher, timeout, self._arrived)
        self._woken = False
        self._look_seconds = FIRST_LOOK_SECONDS

    def advance(self) -> None:
        """Waits until something has finished."""
        dispatcher, slots = self._dispatcher, self._slots
        slots.collected()
        slots.open()
        if self._look() == 0:
            slots.open()
        while not (dispatcher.ready or dispatcher.ended or self._woken):
            waits = (slots.abandon_overdue(), dispatcher.pause, self._look(), LONGEST_SECONDS)
            with suppress(Empty):
                self._arrival.get(timeout=min(w for w in waits if w is not None))
            slots.collected()
            slots.open()
        if not (dispatcher.ended or self._woken):
            time.sleep(BATCH_SECONDS)
        self._woken = False

    def _look(self) -> float | None:
        """Whether those that run only sleep, while nothing else is known; when to look again."""
        if not self._dispatcher.in_the_dark:
            return None
        if self._slots.all_sleep():
            self._dispatcher.asleep()
            return 0
        self._look_seconds *= 2  # they may not have begun
        return self._look_seconds

    def wake(self) -> None:
        """Lets `advance` come back soon."""
        self._woken = True
        self._arrived()

    def _arrived(self) -> None:
        self._arrival.put(None)

    def close(self, *, wait: bool = True) -> None:
        """Starts nothing more, and waits for what runs, unless it shall not."""
        self._slots.shut()
        if wait:
            self._slots.wait_for_all()
        else:
            self._slots.leave_input()
