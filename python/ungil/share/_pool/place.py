"""Which pool this process is a worker of, and as which one."""

from __future__ import annotations

import os
from typing import NamedTuple

from ungil.share._pool.line import Desk, Line


class Place(NamedTuple):
    """What a worker has, and which process it is."""

    line: Line
    desk: Desk
    worker: int
    pid: int


_taken: Place | None = None


def take(line: Line, desk: Desk, worker: int) -> None:
    """Make this process that worker of the pool with this line."""
    global _taken
    _taken = Place(line, desk, worker, os.getpid())


def in_pool(token: str) -> Place:
    """Return the place of this process in a pool; RuntimeError if it has none there."""
    if _taken is None or _taken.line.token != token or _taken.pid != os.getpid():
        raise RuntimeError(
            "only the process that made a pool and its workers can use it: make another pool here"
        )
    return _taken
