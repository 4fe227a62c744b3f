"""Python objects in shared memory, used by processes as threads use objects.

    heap = share.Heap(max_size=1 << 30)
    heap.root["counts"] = {"seen": 0}
    os.fork()
    heap.root["counts"].incr("seen")  # in both processes, none lost

Dicts, lists, sets and deques that you put into a shared object become shared, with everything in
them. str, bytes, int, float, complex, bool, None, tuple and frozenset are copied both ways. So are
dates and times, Decimal, Fraction, UUID, range and members of enums. A slice of a shared list is an
ordinary list. Nothing is pickled, except what you wrap in `Pickled`.
"""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from ungil import _native

if TYPE_CHECKING:
    from ungil._native import ABSENT, Absent, QueueLease
    from ungil.share._array import array
    from ungil.share._buffer import buffer
    from ungil.share._changes import await_change, version, wait_for_change
    from ungil.share._deque import deque as deque
    from ungil.share._dict import dict as dict
    from ungil.share._frozen import (
        FrozenDict,
        FrozenList,
        FrozenSet,
        FrozenTuple,
        freeze,
        frozen,
    )
    from ungil.share._heap import Heap
    from ungil.share._list import list as list
    from ungil.share._manager import Manager
    from ungil.share._monitor import owner_died
    from ungil.share._pool.died import WorkerDied
    from ungil.share._pool.pool import Pool, PoolTasks
    from ungil.share._queue import PriorityQueue, Queue, ShutDown, wait
    from ungil.share._set import set as set
    from ungil.share._statistics import (
        AttachedProcess,
        Collected,
        Contents,
        HeldLock,
        Statistics,
        Usage,
    )
    from ungil.share._struct import cas, incr, struct
    from ungil.share._sync import (
        Barrier,
        BoundedSemaphore,
        Condition,
        Event,
        Lock,
        RLock,
        Semaphore,
    )
    from ungil.share._values import Pickled

# `share.dict`, `share.list`, `share.set` and `share.deque` are public, and not here: `import *`
# would put them in the place of the builtin ones.
__all__ = [
    "ABSENT",
    "Absent",
    "AttachedProcess",
    "Barrier",
    "BoundedSemaphore",
    "Collected",
    "Condition",
    "Contents",
    "Event",
    "FrozenDict",
    "FrozenList",
    "FrozenSet",
    "FrozenTuple",
    "Heap",
    "HeldLock",
    "Lock",
    "Manager",
    "Pickled",
    "Pool",
    "PoolTasks",
    "PriorityQueue",
    "Queue",
    "QueueLease",
    "RLock",
    "Semaphore",
    "ShutDown",
    "Statistics",
    "Usage",
    "WorkerDied",
    "array",
    "await_change",
    "buffer",
    "cas",
    "freeze",
    "frozen",
    "incr",
    "owner_died",
    "struct",
    "version",
    "wait",
    "wait_for_change",
]

# Where each name is. It is imported when it is asked for, and the class of a shared object when the
# first one is received: a worker of a pool starts in half the time.
_PLACES = {
    "ungil._native": ("ABSENT", "Absent", "QueueLease"),
    "ungil.share._array": ("array",),
    "ungil.share._buffer": ("buffer",),
    "ungil.share._changes": ("await_change", "version", "wait_for_change"),
    "ungil.share._deque": ("deque",),
    "ungil.share._dict": ("dict",),
    "ungil.share._frozen": (
        *("FrozenDict", "FrozenList", "FrozenSet", "FrozenTuple"),
        *("freeze", "frozen"),
    ),
    "ungil.share._heap": ("Heap",),
    "ungil.share._list": ("list",),
    "ungil.share._manager": ("Manager",),
    "ungil.share._monitor": ("owner_died",),
    "ungil.share._pool.died": ("WorkerDied",),
    "ungil.share._pool.pool": ("Pool", "PoolTasks"),
    "ungil.share._queue": ("PriorityQueue", "Queue", "ShutDown", "wait"),
    "ungil.share._set": ("set",),
    "ungil.share._statistics": (
        *("AttachedProcess", "Collected", "Contents", "HeldLock", "Statistics", "Usage"),
    ),
    "ungil.share._struct": ("cas", "incr", "struct"),
    "ungil.share._sync": (
        *("Barrier", "BoundedSemaphore", "Condition", "Event", "Lock", "RLock", "Semaphore"),
    ),
    "ungil.share._values": ("Pickled",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> Iterable[str]:
    return {*globals(), *_MODULES}


# Whoever has received an object has its heap, and may fork.
os.register_at_fork(
    before=_native.before_fork,
    after_in_parent=_native.after_fork_in_parent,
    after_in_child=_native.after_fork_in_child,
)
