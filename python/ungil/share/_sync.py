"""What threads and processes wait for: the API of `threading`, in shared memory.

    heap.root["lock"] = share.Lock()
    with heap.root["lock"]:
        ...

An object made here only says what is wanted. Putting it into a heap makes the one that can be used,
which is what the heap returns.

They survive the death of who uses them, be it a thread or a process, within some 20 ms of a wait;
each class says how.
Waiting lets other threads run, and Ctrl-C ends it. In a transaction, nobody waits.
"""

import time
from collections.abc import Callable
from typing import Self, TypeVar

from ungil import _native
from ungil.share._handle import Handled, type_name

T = TypeVar("T")


class Lock(Handled, _native.SharedLock):
    """A lock like `threading.Lock`: any thread of any process can release it.

    If its holder dies, the next thread gets it, and sees `owner_died` until it releases the lock:
    what the lock guards may be half changed.
    """

    __slots__ = ()

    def __new__(cls, held: _native.Held | None = None, /) -> Self:
        return super().__new__(cls, held)

    def __repr__(self) -> str:
        return _described(self, lambda: "locked" if self.locked() else "unlocked")


class RLock(Handled, _native.SharedLock):
    """A lock like `threading.RLock`.

    Its holder can acquire it again, and only the holder can release it.
    If its holder dies, the next thread gets it, and sees `owner_died` until it releases the lock.
    """

    __slots__ = ()

    def __new__(cls, held: _native.Held | None = None, /) -> Self:
        return super().__new__(cls, held, reentrant=True)

    def __repr__(self) -> str:
        return _described(self, lambda: "locked" if self.locked() else "unlocked")


class Condition(Handled, _native.SharedCondition):
    """A condition like `threading.Condition`, with a lock of its own or a given one.

    The lock of its own is re-entrant. Several conditions can be made with the same lock.
    If a notified waiter dies, the notification goes to the next one. So a wait can end without a
    notification of its own, as with `threading`.
    """

    __slots__ = ()

    def __new__(cls, lock: Lock | RLock | _native.Held | None = None) -> Self:
        if isinstance(lock, _native.Held):
            return super().__new__(cls, lock)
        if lock is not None and not isinstance(lock, _native.SharedLock):  # pyright: ignore
            raise TypeError(
                f"lock is of type {type_name(lock)}: a share.Condition takes a share.Lock or a"
                " share.RLock"
            )
        return super().__new__(cls, lock=lock)

    def __repr__(self) -> str:
        return _described(self, lambda: "locked" if self.locked() else "unlocked")

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until `predicate` is true, at most `timeout` seconds; return what it returned last.

        Raises RuntimeError if this thread does not hold the lock.
        """
        end = None if timeout is None else time.monotonic() + timeout
        result = predicate()
        while not result:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result


class Semaphore(Handled, _native.SharedSemaphore):
    """A semaphore like `threading.Semaphore`; any value from 0 to 2^31 - 1.

    It counts events: units that a dead process took stay taken.
    """

    __slots__ = ()

    def __new__(cls, value: int | _native.Held = 1) -> Self:
        if isinstance(value, _native.Held):
            return super().__new__(cls, value)
        return super().__new__(cls, value=value)

    def __repr__(self) -> str:
        return _described(self, lambda: f"value={self.value}")


class BoundedSemaphore(Handled, _native.SharedSemaphore):
    """A semaphore like `threading.BoundedSemaphore`: at most 65536 places, each with its owner.

    Releasing more than were acquired raises ValueError. A thread gives back one of its own places
    or, if it has none, that of any other. A thread that finds no free place takes over that of a
    dead one.
    """

    __slots__ = ()

    def __new__(cls, value: int | _native.Held = 1) -> Self:
        if isinstance(value, _native.Held):
            return super().__new__(cls, value)
        return super().__new__(cls, value=value, bounded=True)

    def __repr__(self) -> str:
        return _described(self, lambda: f"value={self.value}")


class Event(Handled, _native.SharedEvent):
    """An event like `threading.Event`; a `clear` right after `set` still wakes all waiters."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _described(self, lambda: "set" if self.is_set() else "unset")


class Barrier(Handled, _native.SharedBarrier):
    """A barrier like `threading.Barrier`.

    The parties pass the action of the last party to `wait`, because functions are not shared. A
    party that dies while it waits breaks the barrier for the others.
    """

    __slots__ = ()

    def __new__(cls, parties: int | _native.Held) -> Self:
        if isinstance(parties, _native.Held):
            return super().__new__(cls, parties)
        return super().__new__(cls, parties=parties)

    def __repr__(self) -> str:
        def state() -> str:
            return "broken" if self.broken else f"waiters={self.n_waiting}/{self.parties}"

        return _described(self, state)


def _described(obj: object, state: Callable[[], str]) -> str:
    try:
        text = state()
    except RuntimeError:
        text = "unshared"
    return f"<share.{type(obj).__name__} at {id(obj):#x}: {text}>"


_native.set_proxy("Lock", Lock)
_native.set_proxy("RLock", RLock)
_native.set_proxy("Condition", Condition)
_native.set_proxy("Semaphore", Semaphore)
_native.set_proxy("BoundedSemaphore", BoundedSemaphore)
_native.set_proxy("Event", Event)
_native.set_proxy("Barrier", Barrier)
