"""The modes of a fan-out, as the contract sees them.

What an item does is a coroutine in every test of the contract. A mode for ordinary functions runs
it to its end in one step: what it awaits there blocks its thread, and never yields.
"""

# pyright: reportUnknownMemberType=false
# (uvloop has no types)

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import pytest
from suite import PATIENCE_S

from ungil.fanout import Fanout, Outcome, Outcomes, fanout, sleep

# What `aclose` of an asynchronous generator gives, which has no public name.
_CLOSING = "async_generator_athrow"

# What an item does.
Deed = Callable[[Any], Coroutine[Any, Any, Any]]


class Event(Protocol):
    """What items wait for."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    async def wait(self) -> object: ...


class Mode:
    """One way to run items, and what is different with it."""

    name: str
    # What `fanout` calls it.
    mode: Literal["lean", "asyncio", "threads", "green"]
    # What runs can be ended; otherwise it is abandoned, or waited for.
    cancels = True
    # How much too early its timers may be.
    early_s = 0.0
    # What an item sets in its context is seen by no other.
    isolates = True

    def __str__(self) -> str:
        return self.name

    def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A test begins."""

    def settle(self) -> None:
        """Comes back when nothing is left of the fan-outs that have ended."""

    def end(self) -> None:
        """A test ends: what it has left waiting goes on, and nothing may be left."""

    def event(self) -> Event:
        """One that is not set."""
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        """As an item of this mode does; of nothing, it lets others go first."""
        raise NotImplementedError

    async def itself(self, item: Any) -> Any:
        """What an item may do: comes back, and not at once."""
        await self.sleep(0)
        return item

    def function(self, deed: Deed) -> Callable[[Any], Any]:
        """What to give to `fanout`."""
        return deed

    def fanout(self, deed: Deed, items: Iterable[Any], **options: Any) -> Outcomes[Any, Any]:
        """The outcomes, which come as they are asked for."""
        return fanout(self.function(deed), items, mode=self.mode, **options)

    def release(self, event: Event) -> None:
        """Sets the event when somebody has left the fan-out and waits for its items to end.

        Where items can be ended nobody waits for them, and the event stays as it is.
        """

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Runs a program with an event loop; nothing may be left behind in that."""
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(_and_nothing_is_left(main))

    def streaming(self, **options: Any) -> Fanout:
        """A `Fanout` of this mode."""
        return Fanout(mode=self.mode, **options)

    def stream(
        self, fan: Fanout, deed: Deed, items: Iterable[Any] | AsyncIterable[Any]
    ) -> AsyncGenerator[Outcome[Any, Any]]:
        """The outcomes, which come as they end. It can be closed, as a generator can."""
        return cast("AsyncGenerator[Outcome[Any, Any]]", fan.stream(self.function(deed), items))

    def release_in_loop(self, event: Event) -> None:
        """As `release`, where an event loop runs."""


class Lean(Mode):
    """Coroutines on ungil's own loop."""

    name = mode = "lean"

    async def sleep(self, seconds: float) -> None:
        await sleep(seconds)

    def event(self) -> Event:
        return _LeanEvent()


class _LeanEvent:
    """The loop has time, descriptors, and no events."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set
        self.is_set = self._event.is_set

    async def wait(self) -> None:
        while not self.is_set():
            await sleep(0.001)


class Asyncio(Mode):
    """Coroutines on asyncio's own loop."""

    name = mode = "asyncio"
    early_s = 0.005
    isolates = False  # Items that one task runs have its context.

    def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def event(self) -> Event:
        return asyncio.Event()


class Uvloop(Asyncio):
    """Coroutines on uvloop's loop, whose timers are in whole milliseconds."""

    name = "uvloop"

    def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pass

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        import uvloop  # pyright: ignore[reportMissingTypeStubs]

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_and_nothing_is_left(main))


async def _and_nothing_is_left(main: Coroutine[Any, Any, Any]) -> Any:
    result = await main
    await nothing_runs()
    return result


async def nothing_runs() -> None:
    """Fails if there is another task than this one.

    But the loop closes generators that nobody has in hand in tasks of its own: they are waited for.
    """
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    closing = {task for task in others if type(task.get_coro()).__name__ == _CLOSING}
    assert others == closing
    if closing:
        await asyncio.wait(closing, timeout=PATIENCE_S)
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Threads(Mode):
    """Ordinary functions in threads, which cannot be ended."""

    name = mode = "threads"
    cancels = False

    def __init__(self) -> None:
        self._events: list[Event] = []

    def settle(self) -> None:
        for thread in fanout_threads():
            thread.join(PATIENCE_S)
        assert fanout_threads() == []

    def end(self) -> None:
        while self._events:
            self._events.pop().set()
        self.settle()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def event(self) -> Event:
        self._events.append(_BlockingEvent())
        return self._events[-1]

    def function(self, deed: Deed) -> Callable[[Any], Any]:
        def in_one_step(item: Any) -> Any:
            try:
                deed(item).send(None)
            except StopIteration as end:
                return end.value
            raise AssertionError("it awaits what does not block")

        return in_one_step

    def release(self, event: Event) -> None:
        caller = threading.get_ident()

        def look() -> None:
            while not _joins_a_thread(caller):
                time.sleep(0.001)
            event.set()

        threading.Thread(target=look, daemon=True).start()

    def stream(
        self, fan: Fanout, deed: Deed, items: Iterable[Any] | AsyncIterable[Any]
    ) -> AsyncGenerator[Outcome[Any, Any]]:
        """The outcomes, which come as they end. It can be closed, as a generator can."""
        return cast("AsyncGenerator[Outcome[Any, Any]]", fan.stream(self.function(deed), items))

    def release_in_loop(self, event: Event) -> None:
        # It lets nobody else run before it has stopped what may start.
        asyncio.get_running_loop().call_soon(event.set)


def fanout_threads() -> list[threading.Thread]:
    """Those of fan-outs that live."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("fanout-")]


def _joins_a_thread(ident: int) -> bool:
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code is threading.Thread.join.__code__:
            return True
        frame = frame.f_back
    return False


class _BlockingEvent:
    """Blocks whoever waits."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set
        self.is_set = self._event.is_set

    async def wait(self) -> None:
        if not self._event.wait(PATIENCE_S):
            raise RuntimeError("the test has not gone on")


class Green(Threads):
    """Ordinary functions in gevent's green threads, in a process that gevent has patched."""

    name = mode = "green"
    cancels = True

    def settle(self) -> None:
        """Green threads have ended when the fan-out has."""

    def release(self, event: Event) -> None:
        pass


LEAN, ASYNCIO, UVLOOP, THREADS, GREEN = Lean(), Asyncio(), Uvloop(), Threads(), Green()
MODES: tuple[Mode, ...] = (LEAN, ASYNCIO, UVLOOP, THREADS, GREEN)
# Those that `Fanout` has, for programs with an event loop of their own.
STREAMS: tuple[Mode, ...] = (ASYNCIO, UVLOOP, THREADS)


@dataclass(frozen=True)
class Way:
    """A mode, and whether it is called or streams."""

    mode: Mode
    streams: bool

    def __str__(self) -> str:
        return f"{self.mode}-stream" if self.streams else f"{self.mode}"

    def outcomes(self, deed: Deed, items: Iterable[Any], **options: Any) -> list[Outcome[Any, Any]]:
        """Runs everything. Gives the outcomes in the order of the items."""
        if not self.streams:
            return list(self.mode.fanout(deed, items, **options))

        async def stream() -> list[Outcome[Any, Any]]:
            async with self.mode.streaming(**options) as fan:
                return [one async for one in self.mode.stream(fan, deed, items)]

        return sorted(self.mode.run(stream()), key=lambda outcome: outcome.index)


WAYS = (*(Way(mode, False) for mode in MODES), *(Way(mode, True) for mode in STREAMS))
