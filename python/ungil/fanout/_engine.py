"""Engines as modes: for a caller with an event loop, and for one without."""

import asyncio
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ungil._native import Dispatcher, Outcome
from ungil.fanout._options import Options
from ungil.fanout._shards import News, Pool, Shards


def open_pool(
    fn: Callable[[Any], Any],
    mode: str,
    options: Options,
    deliver: Callable[[tuple[object, News]], None],
) -> Pool:
    """The workers that `options.engine` names. May take the seconds that connecting takes."""
    local = {"mode": mode, "timeout": options.timeout}
    engine = options.engine
    from ungil.fanout._processes import Processes

    workers = None
    if isinstance(engine, str):
        number = engine.partition(":")[2]
        workers = int(number) if number else None
    return Processes(fn, local, workers, deliver)


class Engine:
    """For a caller without an event loop."""

    def __init__(
        self, fn: Callable[[Any], Any], mode: str, dispatcher: Dispatcher, options: Options
    ) -> None:
        self._dispatcher = dispatcher
        self._news: SimpleQueue[tuple[object, News]] = SimpleQueue()
        pool = open_pool(fn, mode, options, self._news.put)
        # Also if nobody closes the outcomes: a `break` out of their loop is enough.
        self._close = weakref.finalize(self, pool.close)
        self._shards = Shards(pool, dispatcher, options.limit)
        self.name = str(options.engine)

    def advance(self) -> None:
        """Waits until something has finished."""
        dispatcher, shards, news = self._dispatcher, self._shards, self._news
        shards.fill()
        while not (dispatcher.ready or dispatcher.ended):
            try:
                shards.handle(*news.get(timeout=dispatcher.pause))
                while True:
                    shards.handle(*news.get_nowait())
            except Empty:
                pass
            shards.fill()

    def close(self) -> None:
        """Ends the workers, and what they run."""
        self._close()
