"""What a pool has in a heap: the line of tasks, what became of them, and two bells.

Every step on it is one operation of the heap, so that a kill leaves it done or not done. Nobody
waits for anybody else's step: who finds no task rests on a semaphore until one is put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ungil.share._deque import deque
    from ungil.share._dict import dict
    from ungil.share._list import list
    from ungil.share._sync import Semaphore

# What a worker's desk says, beside the number of the task that it runs.
STARTING = None
RESTING = 0
# Added to the number of a task with which a worker is to be killed: no block of the heap, which may
# be full.
DOOMED = 1 << 62
# Of `Line.state`.
OPEN, CLOSING = 0, 1
# Its places: whether the pool is open, and how many workers may leave that find nothing to do.
STATE, LEAVERS = 0, 1


class Line(NamedTuple):
    """The shared objects of one pool."""

    tasks: deque[Any]
    results: deque[Any]
    functions: dict[int, bytes]
    work: Semaphore
    """Rung for workers that rest."""
    bell: Semaphore
    """Rung for the thread that collects results."""
    state: list[int]
    token: str
    """What tells this pool from others."""


class Desk(NamedTuple):
    """What one worker shares with its pool."""

    now: list[int | None]
    """One item: STARTING; RESTING; below zero, it is about to take a task, and every time another
    number; above, it has the task of that number; from DOOMED on, it is to be killed with it."""
    inbox: deque[Any]
    """What became of tasks that its tasks have submitted."""
    mail: Semaphore


def task_on(desk: Desk) -> int | None:
    """Return what a desk says, be its task to be killed or not."""
    now = desk.now[0]
    return now if now is None or now < DOOMED else now - DOOMED
