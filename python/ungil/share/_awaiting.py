"""Waiting in event loops.

A process has one thread for each heap of whose objects a task waits, as long as one does. It sleeps
at the bell of the heap, without the GIL, and calls the event loops of those tasks whose wishes may
be fulfilled then.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from ungil import _native

# How long the thread sleeps at first, and at last, before it looks though nobody rang: somebody can
# be killed who was about to.
_SHORTEST_S = 0.02
_LONGEST_S = 0.1


async def ready(queue: _native.SharedQueue[Any], *, room: bool = False) -> None:
    """Wait until a queue may have an item, or `room`; or until it is closed.

    Raises RuntimeError without an event loop of asyncio or trio.
    """
    await _until(_Wish(queue, room, functools.partial(_chances, queue, room)))


async def change(shared: object, version: int) -> None:
    """Wait until a shared object has changed another number of times than `version`."""

    def chances() -> int:
        return 0 if _native.watch_object(shared) == version else sys.maxsize

    await _until(_Wish(shared, version, chances))


class _Wish:
    """What a task waits for."""

    def __init__(self, shared: object, what: int, chances: Callable[[], int]) -> None:
        self.shared = shared
        # Tasks with the same wish are called one after the other.
        self.key = (id(shared), what)
        # How many tasks are to try. If none, the bell rings when that has changed.
        self.chances = chances


async def _until(wish: _Wish) -> None:
    wait, call = _signal()
    bell = _bells.setdefault(_native.watch_heap(wish.shared), _Bell())
    try:
        bell.add(wish, call)
        await wait()
    except BaseException:
        # Whoever else waits may want what this task was called for.
        bell.discard(wish, call)
        _native.watch_disturb(wish.shared)
        raise


def _signal() -> tuple[Callable[[], Awaitable[object]], Callable[[], None]]:
    """Return what waits in the running event loop, and what ends that wait from any thread."""
    trio: Any = sys.modules.get("trio")
    if trio is not None:
        try:
            token = trio.lowlevel.current_trio_token()
        except RuntimeError:
            pass
        else:
            event = trio.Event()
            return event.wait, _unless_closed(lambda: token.run_sync_soon(event.set))
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not future.done():
            future.set_result(None)

    async def wait() -> None:
        await future

    return wait, _unless_closed(lambda: loop.call_soon_threadsafe(end))


def _unless_closed(call: Callable[[], object]) -> Callable[[], None]:
    def calling() -> None:
        # An event loop that is closed raises it, or trio one derived from it: nobody waits there.
        with contextlib.suppress(RuntimeError):
            call()

    return calling


class _Bell:
    """The bell of a heap, and the thread that sleeps there."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # What ends the waits of the tasks, in the order in which they came, by their wishes.
        self.waits: dict[tuple[int, int], tuple[_Wish, dict[Callable[[], None], None]]] = {}
        self.runs = False

    def add(self, wish: _Wish, call: Callable[[], None]) -> None:
        """Call when a wish may be fulfilled. Raises RuntimeError if no thread can be started."""
        with self.lock:
            if not self.runs:
                thread = threading.Thread(target=self.listen, name="ungil-share", daemon=True)
                # It looks for wishes when the lock is released. If it cannot be started, nobody
                # may take it for one that runs.
                thread.start()
                self.runs = True
            self.waits.setdefault(wish.key, (wish, {}))[1][call] = None
        _native.watch_disturb(wish.shared)

    def discard(self, wish: _Wish, call: Callable[[], None]) -> None:
        """Do not call any more."""
        with self.lock:
            if (waiting := self.waits.get(wish.key)) is not None:
                waiting[1].pop(call, None)

    def listen(self) -> None:
        """Call those whose wishes may be fulfilled, as long as anybody waits."""
        patience = _SHORTEST_S
        while True:
            with self.lock:
                self.waits = {key: waiting for key, waiting in self.waits.items() if waiting[1]}
                wishes = [wish for wish, _ in self.waits.values()]
                if not wishes:
                    self.runs = False
                    return
            first = wishes[0].shared
            seen = _native.watch_bell(first)
            for wish in wishes:
                try:
                    count = wish.chances()
                except Exception:
                    # Whatever it is, the tasks see it when they ask themselves.
                    count = sys.maxsize
                for call in self.pop(wish, count):
                    call()
            rung = _native.watch_sleep(first, seen, patience)
            patience = _SHORTEST_S if rung else min(patience * 2, _LONGEST_S)

    def pop(self, wish: _Wish, count: int) -> list[Callable[[], None]]:
        """Take out up to `count` of those who have waited longest."""
        with self.lock:
            waiting = self.waits.get(wish.key)
            calls: dict[Callable[[], None], None] = {} if waiting is None else waiting[1]
            chosen = list(calls)[:count]
            for call in chosen:
                del calls[call]
            return chosen


def _chances(queue: _native.SharedQueue[Any], room: bool) -> int:
    if not _native.watch_queue(queue, room):
        return 0
    if queue.closed:
        return sys.maxsize
    return max(1, queue.maxsize - queue.qsize() if room else queue.qsize())


_bells: dict[bytes, _Bell] = {}

# A forked child has none of its parent's threads.
os.register_at_fork(after_in_child=_bells.clear)
