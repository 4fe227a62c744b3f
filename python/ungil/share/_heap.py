"""Heaps: memory that processes share."""

from __future__ import annotations

import builtins
import collections
import errno
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar, cast, overload

from ungil import _native
from ungil.share._deque import deque
from ungil.share._dict import dict
from ungil.share._list import list
from ungil.share._set import set

# What only some need is imported by who needs it: most processes get a heap from others.
if TYPE_CHECKING:
    from ungil.share._statistics import Collected, Statistics

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Heap:
    """Shared memory, which grows as it is used, up to `max_size` bytes.

    Without a name it lives as long as any process is attached to it. Children that are forked are
    attached to it, and so is a process that unpickles the heap, or an object in it, while the
    process that pickled it is attached.

    With a name any process of the user finds it by `Heap.open(name)`, until `unlink()`: it outlives
    all processes, but not the machine. Names are in /dev/shm, whose size limits it too.

    `max_size` defaults to half of the machine's memory; memory is taken only when it is used.
    Raises ValueError for an impossible name or size, FileExistsError if there is a heap of that
    name, OSError if no file can be made in /dev/shm, MemoryError.
    """

    def __init__(self, name: str | None = None, *, max_size: int | None = None) -> None:
        if name is None:
            self._set(_native.SharedHeap.anonymous(_size(max_size)))
            return
        self._set(_to_be_named(name, max_size))
        self._publish(name)

    @classmethod
    def open(
        cls,
        name: str,
        *,
        create: bool = False,
        max_size: int | None = None,
        init: Callable[[Self], object] | None = None,
    ) -> Self:
        """Attach to the heap that a process of this user has made with that name.

        With `create`, a missing heap is made. If several processes or threads ask at once, one
        makes it and the others wait. That one calls `init(heap)`, if given, and the others find the
        heap only after `init` has returned. If `init` raises an exception, or its process dies,
        there is no heap, and the next one that waits makes it. `max_size` and `init` have no effect
        on a heap that exists.

        Raises FileNotFoundError if there is none, PermissionError if the file belongs to another
        user or others may use it, ValueError if it is damaged, of another version of ungil, or not
        a heap; with `create`, what `Heap()` and `init` raise.
        """
        if not create:
            if max_size is not None or init is not None:
                raise TypeError(
                    "max_size and init are only for the process that makes the heap: pass "
                    "create=True"
                )
            return cls._opened(name)
        try:
            return cls._opened(name)
        except FileNotFoundError:
            pass
        from ungil.share import _making

        with _making.alone(name):
            try:
                return cls._opened(name)
            except FileNotFoundError:
                pass
            heap = cls._of(_to_be_named(name, max_size))
            if init is not None:
                init(heap)
            try:
                heap._publish(name)
            except FileExistsError:
                # Of somebody who did not ask.
                return cls._opened(name)
            return heap

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Self:
        """Attach to the heap in a file, to look into it: for one without a name, /proc/PID/fd/N.

        Process PID has it open as file N. A heap with a name is /dev/shm/ungil-heap-UID-NAME.
        Raises what `open` does.
        """
        return cls._of(_native.SharedHeap.open(path))

    @classmethod
    def _opened(cls, name: str) -> Self:
        from ungil.share import _names

        try:
            return cls._of(_native.SharedHeap.open(_names.path_of(name)))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, f"there is no heap named {name!r}") from None

    def _publish(self, name: str) -> None:
        try:
            self._heap.publish()
        except FileExistsError:
            why = f"a heap named {name!r} already exists"
            raise FileExistsError(errno.EEXIST, why) from None

    @classmethod
    def _of(cls, native: _native.SharedHeap) -> Self:
        heap = cls.__new__(cls)
        heap._set(native)
        return heap

    def _set(self, native: _native.SharedHeap) -> None:
        self._attached: _native.SharedHeap | None = native
        self._uuid = native.uuid
        self._name: str | None = None
        if native.path is not None:
            from ungil.share import _names

            self._name = _names.name_of(native.path)

    @property
    def _heap(self) -> _native.SharedHeap:
        if self._attached is None:
            raise ValueError("the heap is closed")
        return self._attached

    @property
    def name(self) -> str | None:
        """The name that it was made or opened with; None without one."""
        return self._name

    @property
    def max_size(self) -> int:
        """Bytes to which it can grow."""
        return self._heap.max_size

    @property
    def root(self) -> dict[str, Any]:
        """The dict that every process with the heap finds; its keys may be of other types, too."""
        root: dict[str, Any] = cast(Any, self._heap.root)
        return root

    @overload
    def share(self, given: builtins.dict[K, V], /) -> dict[K, V]: ...
    @overload
    def share(self, given: builtins.list[T], /) -> list[T]: ...
    @overload
    def share(self, given: builtins.set[T], /) -> set[T]: ...
    @overload
    def share(self, given: collections.deque[T], /) -> deque[T]: ...
    @overload
    def share(self, given: T, /) -> T: ...
    def share(self, given: object, /) -> object:
        """Return a shared object equal to `given`; `given` itself if it cannot change.

        Raises TypeError that names the place of what cannot be shared.
        """
        return self._heap.share(given)

    def atomic(self) -> AbstractContextManager[None]:
        """Make all changes of a `with` block one step: others see all of them or none.

        If the block raises an exception, or the process is killed, all its changes are undone.
        Others cannot change what the block reads until it ends. One such block runs at a time;
        others wait. A block inside another is a part of it that can fail alone.

        Do not await inside the block: other tasks of the thread are not part of it. If one runs
        before the block ends, all its changes are undone, and its next change, or its end, raises
        RuntimeError.
        """
        return self._heap.atomic()

    def gc(self, *, patience: float = 10.0) -> Collected | None:
        """Free cycles and what killed processes left; return how much that was.

        All other processes of the heap pause meanwhile. If one of them is busy for `patience`
        seconds, in a block of `atomic()` for example, nothing is collected: None.

        Raises ValueError if the heap is closed or damaged.
        """
        from ungil.share._statistics import Collected

        collected = self._heap.gc(patience)
        return None if collected is None else Collected(*collected)

    def statistics(self, *, contents: bool = True, patience: float = 10.0) -> Statistics:
        """Return what is in the heap, who else is attached to it, and who holds which lock.

        Counting the contents pauses all other processes of the heap for a moment (10 to 30 ms
        for a million blocks). If one of them is busy for `patience` seconds, they are not counted;
        with `contents=False` they are left out, and no process pauses.

        Raises ValueError if the heap is closed or damaged.
        """
        from ungil.share._statistics import statistics_of

        return statistics_of(self._heap.statistics(patience if contents else None))

    def unlink(self) -> None:
        """Remove the name: nobody finds the heap by it any more; attached processes stay attached.

        Raises FileNotFoundError if it has no name any more, or never had one.
        """
        if not self._heap.unlink():
            what = "the heap has no name" if self._name is None else f"{self._name!r} has no heap"
            raise FileNotFoundError(errno.ENOENT, f"{what} that could be taken away")

    def close(self) -> None:
        """Close the heap. Objects of it that are in use keep the process attached."""
        self._attached = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return self._uuid == other._uuid if isinstance(other, Heap) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._uuid)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return attached, (self._uuid, self._heap.place)

    def __repr__(self) -> str:
        state = " closed" if self._attached is None else ""
        return f"<share.Heap{'' if self._name is None else f' {self._name!r}'}{state}>"


def _size(max_size: int | None) -> int:
    if max_size is not None:
        if not isinstance(max_size, SupportsIndex):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"max_size={max_size!r} is not a whole number of bytes")
        if not 0 <= (size := index(max_size)) <= sys.maxsize:
            raise ValueError(f"a heap cannot have max_size={max_size!r} bytes")
        return size
    # As much as /dev/shm itself may have unless the administrator says otherwise.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _to_be_named(name: str, max_size: int | None) -> _native.SharedHeap:
    """Make a heap that is published under that name later."""
    from ungil.share import _names

    path = _names.path_of(name)
    try:
        return _native.SharedHeap.unnamed(path, _size(max_size))
    except OSError as error:
        raise _names.explained(error) from None


def attached(uuid: bytes, place: str) -> Heap:
    """Return the heap with that uuid, which a process found at `place`; what a pickled one calls.

    Raises FileNotFoundError if it is not there any more.
    """
    return Heap._of(_native.SharedHeap.find(uuid, place))  # pyright: ignore[reportPrivateUsage]
