"""Queues that every process with their heap uses, as threads use `queue.Queue`.

    heap.root["jobs"] = share.Queue()
    heap.root["jobs"].put(("resize", "cat.png"))  # in one process
    heap.root["jobs"].get()  # in another one

Like a lock, a queue that is made here only says what is wanted: the heap returns the one that can
be used.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Self, TypeVar

from ungil import _native
from ungil.share._handle import Handled, named

T = TypeVar("T")

if TYPE_CHECKING:

    class ShutDown(Exception):
        """A queue is closed: `queue.ShutDown`, which Python has since 3.13."""

elif hasattr(queue, "ShutDown"):
    ShutDown = queue.ShutDown
else:

    class ShutDown(Exception):
        """A queue is closed: `queue.ShutDown`, which Python has since 3.13."""


class Queue(Handled, _native.SharedQueue[T]):
    """A queue like `queue.Queue`, first in, first out, of anything that can be shared.

    Any number of processes and threads put in and take out. One that is killed at any moment loses
    nobody else's items and blocks nobody: its own is in or not, out or not.
    """

    __slots__ = ()

    def __new__(cls, maxsize: int | _native.Held = 0) -> Self:
        if isinstance(maxsize, _native.Held):
            return super().__new__(cls, maxsize)
        return super().__new__(cls, maxsize=maxsize)


named(Queue, "Queue")
_native.set_proxy("Queue", Queue)
