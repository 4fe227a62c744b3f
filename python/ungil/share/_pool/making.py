"""How a pool makes what it has in a heap. Its workers only receive that."""

from __future__ import annotations

import builtins
import collections
import os
from typing import TYPE_CHECKING, Any

# Imported before there is a pool: the classes of what it makes.
from ungil.share import _deque, _dict, _list  # noqa: F401  # pyright: ignore[reportUnusedImport]
from ungil.share._pool.line import OPEN, STARTING, Desk, Line
from ungil.share._sync import Semaphore

if TYPE_CHECKING:
    from ungil.share._heap import Heap


def new_line(heap: Heap) -> Line:
    """Make the shared objects of a pool."""
    return Line(
        tasks=heap.share(collections.deque[Any]()),
        results=heap.share(collections.deque[Any]()),
        functions=heap.share(builtins.dict[int, bytes]()),
        work=heap.share(Semaphore(0)),
        bell=heap.share(Semaphore(0)),
        state=heap.share([OPEN, 0]),
        token=os.urandom(16).hex(),
    )


def new_desk(heap: Heap) -> Desk:
    """Make what a worker shares with its pool."""
    return Desk(
        now=heap.share([STARTING]),
        inbox=heap.share(collections.deque[Any]()),
        mail=heap.share(Semaphore(0)),
    )
