"""Queues that every process with their heap uses, as threads use those of `queue`.

    heap.root["jobs"] = share.Queue()
    heap.root["jobs"].put(("resize", "cat.png"))  # in one process
    heap.root["jobs"].get()  # in another one

Like a lock, a queue that is made here only says what is wanted: the heap returns the one that can
be used.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ungil import _native
from ungil.share._handle import Handled, named, type_name

T = TypeVar("T")
Q = TypeVar("Q", bound="AnyQueue[Any]")

if TYPE_CHECKING or not hasattr(queue, "ShutDown"):

    class ShutDown(Exception):
        """A queue is closed. From Python 3.13 on it is `queue.ShutDown`."""

else:
    ShutDown = queue.ShutDown


class AnyQueue(Handled, _native.SharedQueue[T]):
    """What all queues have."""

    __slots__ = ()

    async def aget(self) -> T:
        """Take the first item out, as `get` does; other tasks run while there is none.

        Works in event loops of asyncio and trio. A cancelled task has taken nothing.
        Raises `ShutDown` if the queue is closed and empty.
        """
        while True:
            try:
                return self.get_nowait()
            except queue.Empty:
                await self._ready()

    async def aput(self, item: T) -> None:
        """Put an item in, as `put` does; other tasks run while there is no room.

        Raises `ShutDown` if the queue is closed.
        """
        while True:
            try:
                return self.put_nowait(item)
            except queue.Full:
                await self._ready(room=True)

    async def alease(self) -> _native.QueueLease[T]:
        """Take the first item out on a lease, as `lease` does; other tasks run meanwhile."""
        while True:
            try:
                return self.lease(block=False)
            except queue.Empty:
                await self._ready()

    async def _ready(self, *, room: bool = False) -> None:
        # It imports asyncio, which takes longer than everything else here.
        from ungil.share import _awaiting

        await _awaiting.ready(self, room=room)

    def __repr__(self) -> str:
        name = type(self).__name__
        if not _native.is_shared(self):
            said = [str(self.maxsize)] if self.maxsize else []
            if self.spin:
                said.append(f"spin={self.spin}")
            return f"{name}({', '.join(said)})"
        limit = f"/{self.maxsize}" if self.maxsize else ""
        closed = ", closed" if self.closed else ""
        return f"<{name} with {self.qsize()}{limit} items{closed}>"


class Queue(AnyQueue[T]):
    """A queue like `queue.Queue`: first in, first out, of anything that can be shared.

    Any number of processes and threads put items in and take them out. A process that is killed at
    any moment loses no items of others and blocks nobody: its own item is fully in or not in, fully
    out or not out. An item that a consumer has taken dies with it; a leased one (`lease`) does not.

    A thread that waits sleeps. With `spin`, it looks for so many seconds first, and keeps a
    processor busy: at most 0.01, and the same for all processes. ValueError for anything else.
    A queue cannot be used in a transaction.
    """

    __slots__ = ()

    def __new__(cls, maxsize: int | _native.Held = 0, *, spin: float = 0.0) -> Self:
        if isinstance(maxsize, _native.Held):
            return super().__new__(cls, maxsize)
        return super().__new__(cls, maxsize=maxsize, spin=spin)


class PriorityQueue(AnyQueue[T]):
    """A queue like `queue.PriorityQueue`: the least item is taken out first.

    Items are compared in the heap, without Python: numbers, strings, bytes, times, UUIDs and tuples
    of these as Python compares them, numbers before strings, strings before bytes, bytes before
    tuples, tuples before times. A member of an IntEnum or a StrEnum stands where its value does,
    and None comes last. Items that compare equal come out in the order in which they were put in,
    and so do those that begin alike and go on with what has no order: `(priority, anything)` needs
    no tie-breaker. `spin` is that of `Queue`.

    `put` raises TypeError where the priority, which is the item or its first part, has no order.
    """

    __slots__ = ()

    def __new__(cls, maxsize: int | _native.Held = 0, *, spin: float = 0.0) -> Self:
        if isinstance(maxsize, _native.Held):
            return super().__new__(cls, maxsize)
        return super().__new__(cls, maxsize=maxsize, ordered=True, spin=spin)


def wait(queues: Iterable[Q], timeout: float | None = None) -> list[Q]:
    """Wait until at least one of several queues has an item, and return all that have.

    Those that are closed and empty are returned, too: a `get` of them does not wait. The list is
    empty if there was none after `timeout` seconds. Nothing is taken out, so another process may
    take the item first. Raises ValueError if they are not all in one heap.
    """
    if not isinstance(queues, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = ": write share.wait([queue])" if isinstance(queues, AnyQueue) else ""
        raise TypeError(f"wait() takes a list of queues, not {type_name(queues)}{hint}")
    wanted = list(queues)
    for number, given in enumerate(wanted):
        if not isinstance(given, AnyQueue):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"queues[{number}] is of type {type_name(given)}: wait() takes a share.Queue or a"
                " share.PriorityQueue, and share.wait_for_change() a container"
            )
    return [wanted[number] for number in _native.wait_for_queues(wanted, timeout)]


named(Queue, "Queue")
named(PriorityQueue, "PriorityQueue")
_native.set_proxy("Queue", Queue)
_native.set_proxy("PriorityQueue", PriorityQueue)
