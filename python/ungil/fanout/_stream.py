"""`Fanout`: for code that runs in an event loop."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from ungil._native import Dispatcher, Outcome
from ungil.fanout import _thread_slots as threads
from ungil.fanout._asyncio import Slots as Tasks
from ungil.fanout._asyncio import awaiting
from ungil.fanout._collector import expect
from ungil.fanout._failures import Stopped
from ungil.fanout._mode import choose_beside
from ungil.fanout._plan import Plan

if TYPE_CHECKING:
    from ungil.fanout._options import Options

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")

# How many outcomes may wait for a slow consumer.
_WINDOW = 1000


class Fanout:
    """Calls functions with many items at once, in a program that has its own event loop.

        async with Fanout(timeout=30) as f:
            async for outcome in f.stream(check, hosts):
                ...

    The keyword arguments are `Options`. Modes "lean" and "green" have loops of their own, and
    cannot be used here. Leaving the block cancels what still runs, and waits for it.

    Raises ValueError and TypeError for impossible options.
    """

    def __init__(self, **options: "Unpack[Options[Any]]") -> None:
        self._plan = Plan(options)
        mode = self._plan.mode
        if mode in ("lean", "green"):
            raise ValueError(
                f'mode={mode!r} has a loop of its own: use fanout(), or mode="asyncio" or "threads"'
            )
        self._streams: list[Stream] = []
        self._latest: Stream | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        for stream in list(self._streams):
            await stream.close()

    @property
    def report(self) -> str:
        """The mode of the latest stream, and why; what `limit="auto"` has found.

        Empty before the first stream.
        """
        return "" if self._latest is None else self._latest.report

    @overload
    def stream(  # pyright: ignore[reportOverlappingOverload]
        self,
        fn: Callable[[_Item], Awaitable[_Value]],
        items: Iterable[_Item] | AsyncIterable[_Item],
    ) -> "AsyncIterator[Outcome[_Item, _Value]]": ...

    @overload
    def stream(
        self, fn: Callable[[_Item], _Value], items: Iterable[_Item] | AsyncIterable[_Item]
    ) -> "AsyncIterator[Outcome[_Item, _Value]]": ...

    async def stream(
        self, fn: Callable[[Any], Any], items: Iterable[Any] | AsyncIterable[Any]
    ) -> AsyncIterator[Outcome]:
        """The outcome of each item, as it finishes. `items` may be endless, and asynchronous."""
        stream = Stream(fn, items, self._plan)
        self._streams.append(stream)
        self._latest = stream
        try:
            async for outcome in stream.outcomes():
                yield outcome
        finally:
            await stream.close()
            self._streams.remove(stream)


class Stream:
    """One use of a `Fanout`; or, with items that its worker is given, of an engine's `Shard`."""

    def __init__(
        self,
        fn: Callable[[Any], Any],
        items: Iterable[Any] | AsyncIterable[Any],
        plan: Plan,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._said = choose_beside(fn, plan.mode, plan.engine)
        mode, _ = self._said
        self._plan = plan
        self._arrival = asyncio.Event()
        self._feeder: asyncio.Task[None] | None = None
        comes_slowly = isinstance(items, AsyncIterable)
        self._journal = plan.open_journal(fn)
        self._dispatcher = plan.dispatcher(
            items,
            mode=mode,
            in_order=False,
            window=_WINDOW,
            journal=self._journal,
            is_fed=comes_slowly,
        )
        if plan.engine is not None:
            from ungil.fanout import _engine as engines

            self._slots = engines.Slots(loop, fn, mode, self._dispatcher, plan, self._arrival.set)
        elif mode == "asyncio":
            self._slots = Tasks(
                loop, awaiting(fn), self._dispatcher, plan.timeout, self._arrival.set
            )
        else:
            self._slots = _Threads(loop, fn, self._dispatcher, plan.timeout, self._arrival.set)
        if comes_slowly:
            self._feeder = loop.create_task(self._feed(items))
        self._display = plan.show(self._dispatcher, items, fn)

    @property
    def report(self) -> str:
        return self._plan.report(*self._said, self._dispatcher)

    async def outcomes(self) -> AsyncIterator[Outcome]:
        dispatcher, arrival, slots = self._dispatcher, self._arrival, self._slots
        while True:
            while (outcome := dispatcher.take()) is not None:
                yield outcome
            if dispatcher.ended:
                return
            arrival.clear()
            slots.collected()
            expect(self, dispatcher.running + dispatcher.room)
            slots.open()
            if not dispatcher.ended:
                await arrival.wait()

    async def close(self) -> None:
        self._dispatcher.stop(Stopped("not run: the fan-out was closed before"))
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.wait([self._feeder])
        try:
            await self._slots.close()
        finally:
            expect(self, 0)
            if self._journal is not None:
                self._journal.close()
            if self._display is not None:
                self._display.close()

    async def _feed(self, items: AsyncIterable[Any]) -> None:
        """Takes items one by one, when there is room for them."""
        dispatcher = self._dispatcher
        try:
            async for item in items:
                await self.has_room()
                if (attempt := dispatcher.put(item)) is not None:
                    self._slots.launch(attempt)
                elif dispatcher.ready:
                    self._arrival.set()  # of an earlier run
        except Exception as error:
            dispatcher.close(error)
        else:
            dispatcher.close()
        self._arrival.set()

    async def has_room(self) -> None:
        """Comes back when an item may begin: something has ended, or time has passed."""
        dispatcher, slots = self._dispatcher, self._slots
        while True:
            # Asked first: a wait that is over meanwhile is seen by `wants`.
            pause = None if slots.is_full else dispatcher.pause
            if dispatcher.wants and not slots.is_full:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await slots.has_room()


class _Threads(threads.Slots):
    """Threads that tell an event loop what has finished."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fn: Callable[[Any], Any],
        dispatcher: Dispatcher,
        timeout: float | None,
        arrived: Callable[[], None],
    ) -> None:
        super().__init__(fn, dispatcher, timeout, self._tell)
        self._loop = loop
        self._tell_loop = arrived
        self._timer: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()

    def open(self) -> None:
        """Starts what may start now, and comes back when time alone changes something."""
        super().open()
        if self._timer is not None:
            self._timer.cancel()
        if self._dispatcher.ended or self._dispatcher.ready:
            # No thread will: the input came to its end only now, or these are of an earlier run.
            self._tell_loop()
        self._come_back()

    def launch(self, attempt: Outcome) -> None:
        """Starts an item that came from elsewhere, and comes back when its time is over."""
        super().launch(attempt)
        if self._timer is None:
            self._come_back()

    def _come_back(self) -> None:
        waits = [w for w in (self.abandon_overdue(), self._dispatcher.pause) if w is not None]
        self._timer = self._loop.call_later(min(waits), self.open) if waits else None

    def collected(self) -> None:
        super().collected()
        # Threads that ended before have told nobody: they had been told of already.
        self._room.set()

    async def has_room(self) -> None:
        """Comes back when an item may have ended."""
        self._room.clear()
        await self._room.wait()

    async def close(self) -> None:
        """Waits for the threads that run."""
        if self._timer is not None:
            self._timer.cancel()
        self.shut()
        await asyncio.to_thread(self.wait_for_all)

    def _tell(self) -> None:
        self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._room.set()
        self._tell_loop()
