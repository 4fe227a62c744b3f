"""What the steps of a coroutine cost the thread that runs them.

An event loop runs many requests in one thread, a step of one and then a step of another. The
counters of the thread are read before and after each step of a request, so that the request is
charged for its own steps and not for those of others.

The loop itself waits for the GIL when it comes back from waiting for events, before the first step
of a round. That wait is in no step, and keeps everything waiting that the events are for: a request
is charged the whole of it. What an event is for goes on one round later, because asyncio sets a
future in one round and resumes its task in the next. So a request is charged for the waits before
the last two rounds, as far as they came after its own last step.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Awaitable, Coroutine, Generator
from inspect import iscoroutine
from threading import local
from typing import Any

from ungil import _native

Sums = tuple[int, int, int]
"""waits, waited_ns, held_ns"""


class Rounds(local):
    """The rounds of the event loop that runs in this thread.

    A round is all that the thread does between two moments in which it lets go of the GIL outside
    of a step, as it does to wait for events.
    """

    def __init__(self) -> None:
        self.number = 0
        self.waits_ns = (0, 0)
        """how long the thread waited for the GIL before this round, and before the one before"""
        self.holds = 0
        """how often it had let go of the GIL when a step last began or ended"""

    def go_on(self, holds: int, this_ns: int, before_ns: int) -> None:
        """A step begins."""
        new = holds - self.holds
        if new:
            self.number += new
            self.holds = holds
            self.waits_ns = (this_ns, before_ns if new > 1 else self.waits_ns[0])


_rounds = Rounds()


class Charges:
    """What has been charged to a request, or to a part of it that runs in another thread or task.

    Made in the thread that all steps run in.
    """

    __slots__ = (
        "_before", "_parts", "_reach", "_round", "_thread", "early_ns", "held_ns", "waited_ns",
        "waits",
    )  # fmt: skip

    def __init__(self, reach: int = 2) -> None:
        self.waits = self.waited_ns = self.held_ns = 0
        self.early_ns = 0
        """how much of it was before the first step"""
        self._before: Sums | None = None
        self._parts: list[Charges] = []
        self._thread = get_ident()
        self._reach = reach
        self._round: int | None = None

    def begin_step(self) -> None:
        """The thread goes on with the request."""
        waits, waited_ns, held_ns, *of_round = _native.gil_thread_waits()
        self._before = waits, waited_ns, held_ns
        rounds = _rounds
        rounds.go_on(*of_round)
        if self._round != rounds.number:
            self._charge_rounds(rounds)

    def _charge_rounds(self, rounds: Rounds) -> None:
        """What the thread waited for before this step, and after the last one."""
        is_first = self._round is None
        since = self._reach if self._round is None else rounds.number - self._round
        for waited_ns in rounds.waits_ns[: min(since, self._reach)]:
            if waited_ns:
                self.waits += 1
                self.waited_ns += waited_ns
        self._round = rounds.number
        if is_first:
            self.early_ns = self.waited_ns

    def end_step(self) -> None:
        """It does something else."""
        before = self._before
        if before is not None:
            waits, waited_ns, held_ns, _rounds.holds, *_ = _native.gil_thread_waits()
            self._before = None
            self.waits += waits - before[0]
            self.waited_ns += waited_ns - before[1]
            self.held_ns += held_ns - before[2]

    def is_in_step(self) -> bool:
        """Whether the calling thread is in a step, so that what it does is charged anyway."""
        return self._before is not None and self._thread == get_ident()

    def part(self, reach: int) -> Charges:
        """Charges of the calling thread that are part of these.

        A reach of 1 is for a thread that does nothing between what woke it and its step.
        """
        part = Charges(reach)
        self._parts.append(part)  # It is whole, whichever thread does it.
        return part

    def so_far(self) -> Sums:
        """All of it, with the step that the calling thread is in."""
        if self.is_in_step():
            self.end_step()
            self.begin_step()
        waits, waited_ns, held_ns = self.waits, self.waited_ns, self.held_ns
        for part in self._parts:
            more = part.so_far()
            waits, waited_ns, held_ns = waits + more[0], waited_ns + more[1], held_ns + more[2]
        return waits, waited_ns, held_ns


class Steps:
    """Awaits a coroutine in the place of its caller, and charges each of its steps."""

    __slots__ = ("_charges", "_coroutine")

    def __init__(self, awaitable: Awaitable[Any], charges: Charges) -> None:
        is_coroutine = iscoroutine(awaitable)
        self._coroutine: Coroutine[Any, Any, Any] = awaitable if is_coroutine else _run(awaitable)
        self._charges = charges

    def __await__(self) -> Generator[Any, Any, Any]:
        # What `await` and event loops use of a generator is here, and it has no frame of its own.
        return self  # pyright: ignore[reportReturnType]

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """One step."""
        charges = self._charges
        charges.begin_step()
        try:
            return self._coroutine.send(value)
        finally:
            charges.end_step()

    def throw(self, *exception: Any) -> Any:
        """One step, which begins with an exception: a cancellation, mostly."""
        charges = self._charges
        charges.begin_step()
        try:
            return self._coroutine.throw(*exception)
        finally:
            charges.end_step()

    def close(self) -> None:
        """The last step of what nobody awaits any more."""
        self._coroutine.close()


async def _run(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
