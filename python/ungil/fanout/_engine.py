"""Engines as modes: for a caller without an event loop, and for one that has its own."""

import asyncio
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ungil._native import Dispatcher, Outcome
from ungil.errors import EngineError
from ungil.fanout._plan import Plan
from ungil.fanout._shards import Deliver, News, Pool, Shards

_DASK_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "ucxx", "inproc")


def named(engine: Any) -> tuple[str, Any]:
    """The kind of engine that `engine` names, and which one of its kind.

    Raises ValueError if it names none.
    """
    if isinstance(engine, str):
        name, _, number = engine.partition(":")
        if name == "processes" and (not number or (number.isdecimal() and int(number) > 0)):
            return "processes", int(number) if number else None
        if engine in ("dask", "ray"):
            return engine, None
        scheme, _, address = engine.partition("://")
        if address and scheme == "ray":
            return "ray", engine
        if address and scheme in _DASK_SCHEMES:
            return "dask", engine
    elif any(kind.__module__.startswith("distributed.") for kind in type(engine).__mro__):
        return "dask", engine
    elif getattr(engine, "__name__", None) == "ray":
        return "ray", None
    raise ValueError(
        f'engine={engine!r} is not one of "processes", "processes:N", "dask", "ray", an address '
        '("tcp://...", "ray://..."), or a distributed.Client'
    )


def open_pool(fn: Callable[[Any], Any], mode: str, plan: Plan, deliver: Deliver) -> Pool:
    """The workers of the engine that is asked for. Takes the seconds that connecting takes."""
    kind, which = named(plan.engine)
    local = {"mode": mode, "timeout": plan.timeout}
    if kind == "processes":
        from ungil.fanout._processes import Processes

        return Processes(which, fn, local, deliver)
    if kind == "dask":
        from ungil.fanout._dask import Dask

        return Dask(which, fn, local, deliver)
    from ungil.fanout._ray import Ray

    return Ray(which, fn, local, deliver)


class Engine:
    """For a caller without an event loop."""

    def __init__(
        self, fn: Callable[[Any], Any], mode: str, dispatcher: Dispatcher, plan: Plan
    ) -> None:
        self._dispatcher = dispatcher
        self._news: SimpleQueue[tuple[object, News] | None] = SimpleQueue()
        self._woken = False
        self._stopped = False
        pool = open_pool(fn, mode, plan, self._news.put)
        # Also if nobody closes the outcomes: a `break` out of their loop is enough.
        self._close = weakref.finalize(self, pool.close)
        self._shards = Shards(pool, dispatcher, plan.limit)
        self.name = named(plan.engine)[0]

    def advance(self) -> None:
        """Waits until something has finished."""
        dispatcher, shards, news = self._dispatcher, self._shards, self._news
        if self._stopped:
            shards.stop()
        shards.fill()
        while not (dispatcher.ready or dispatcher.ended or self._woken):
            try:
                self._handle(news.get(timeout=shards.pause))
                while True:
                    self._handle(news.get_nowait())
            except Empty:
                pass
            shards.fill()
        self._woken = False

    def _handle(self, news: "tuple[object, News] | None") -> None:
        if news is not None:
            self._shards.handle(*news)

    def wake(self) -> None:
        """Lets `advance` come back soon. Everything was stopped: the workers learn it next time."""
        self._stopped = True
        self._woken = True
        self._news.put(None)

    def close(self, *, wait: bool = True) -> None:
        """Ends the workers, and what they run."""
        self._close()


class Slots:
    """For `Fanout`, in the loop that runs."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fn: Callable[[Any], Any],
        mode: str,
        dispatcher: Dispatcher,
        plan: Plan,
        arrived: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._dispatcher = dispatcher
        self._arrived = arrived
        self._news: SimpleQueue[tuple[object, News]] = SimpleQueue()
        self._room = asyncio.Event()
        self._pause: asyncio.TimerHandle | None = None
        self._shards: Shards | None = None
        self._fills = False
        self._early: list[Outcome] = []
        self._pool: asyncio.Future[Pool] = loop.run_in_executor(
            None, open_pool, fn, mode, plan, self._deliver
        )
        self._limit = plan.limit
        self._pool.add_done_callback(self._opened)

    @property
    def is_full(self) -> bool:
        """Whether another item would have to wait here."""
        return bool(self._early) if self._shards is None else self._shards.is_full

    def open(self) -> None:
        """Starts whatever may start now, and comes back when time alone changes something."""
        shards, dispatcher = self._shards, self._dispatcher
        if shards is None:
            return
        shards.fill()
        if self._pause is not None:
            self._pause.cancel()
        pause = shards.pause
        self._pause = None if pause is None else self._loop.call_later(pause, self.open)
        if dispatcher.ready or dispatcher.ended:
            self._arrived()

    def launch(self, attempt: Outcome) -> None:
        """Starts an item that came from elsewhere than the dispatcher's own input."""
        if self._shards is None:
            self._early.append(attempt)
            return
        self._shards.add(attempt)
        if not self._fills:
            # What comes in the same turn of the loop goes in the same batch.
            self._fills = True
            self._loop.call_soon(self._fill)

    def _fill(self) -> None:
        self._fills = False
        self.open()

    def collected(self) -> None:
        """What had finished has been taken."""

    async def has_room(self) -> None:
        """Comes back when an item may have ended."""
        self._room.clear()
        await self._room.wait()

    async def close(self) -> None:
        """Ends the workers, and waits for them."""
        if self._pause is not None:
            self._pause.cancel()
        try:
            pool = await self._pool
        except Exception:
            return  # it was told
        self._shards = None
        await asyncio.to_thread(pool.close)

    def _opened(self, opening: "asyncio.Future[Pool]") -> None:
        if opening.cancelled():
            return
        error = opening.exception()
        if error is None:
            pool = opening.result()
            weakref.finalize(self, pool.close)
            self._shards = Shards(pool, self._dispatcher, self._limit)
            for attempt in self._early:
                self._shards.add(attempt)
            self.open()
        else:
            self._dispatcher.stop(error)
            for attempt in self._early:
                self._dispatcher.failed(attempt, EngineError(f"{error}"))
            self._dispatcher.close(error)
            self._arrived()
        self._early.clear()
        self._room.set()

    def _deliver(self, news: tuple[object, News]) -> None:
        self._news.put(news)
        try:
            self._loop.call_soon_threadsafe(self._handle)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _handle(self) -> None:
        while self._shards is not None and not self._news.empty():
            self._shards.handle(*self._news.get_nowait())
        self._room.set()
        self.open()
