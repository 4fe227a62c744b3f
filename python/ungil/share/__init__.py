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

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from ungil._native import ABSENT, Absent, QueueLease
from ungil.share import _task  # noqa: F401  # pyright: ignore[reportUnusedImport]
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
from ungil.share._monitor import owner_died
from ungil.share._queue import PriorityQueue, Queue, ShutDown, wait
from ungil.share._set import set as set
from ungil.share._sync import (
    Barrier,
    BoundedSemaphore,
    Condition,
    Event,
    Lock,
    RLock,
    Semaphore,
)

if TYPE_CHECKING:
    from ungil.share._manager import Manager
    from ungil.share._pool.died import WorkerDied
    from ungil.share._pool.pool import Pool, PoolTasks
    from ungil.share._statistics import (
        AttachedProcess,
        Collected,
        Contents,
        HeldLock,
        Statistics,
        Usage,
    )
    from ungil.share._struct import cas, incr, struct
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

# What takes longer to import than all the rest, because of the modules of Python's that it needs. A
# worker of a pool begins without it.
_LATER = {
    "AttachedProcess": "_statistics",
    "Collected": "_statistics",
    "Contents": "_statistics",
    "HeldLock": "_statistics",
    "Manager": "_manager",
    "Pickled": "_values",
    "Pool": "_pool.pool",
    "PoolTasks": "_pool.pool",
    "Statistics": "_statistics",
    "Usage": "_statistics",
    "WorkerDied": "_pool.died",
    "cas": "_struct",
    "incr": "_struct",
    "struct": "_struct",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return found


def __dir__() -> Iterable[str]:
    return {*globals(), *_LATER}
