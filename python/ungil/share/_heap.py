"""Heaps: memory that processes share."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from ungil import _native
from ungil.share import _names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Heap:
    """Shared memory, which grows as it is used, up to `max_size` bytes.

    Without a name it lives as long as any process is attached to it. Children that are forked are
    attached to it, and so is a process that unpickles the heap, or an object in it, while the
    process that pickled it is attached.

    With a name any process of the user finds it by `Heap.open(name)`, until `unlink()`: it outlives
    all processes, but not the machine. Names are in /dev/shm, whose size limits it too.

    `max_size` is half of the machine's memory if it is not said; nothing is taken before it is
    used. Raises ValueError for an impossible name or size, FileExistsError if there is a heap of
    that name, MemoryError.
    """

    def __init__(self, name: str | None = None, *, max_size: int | None = None) -> None:
        if max_size is None:
            # As much as /dev/shm itself may have unless the administrator says otherwise.
            max_size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        if name is None:
            self._set(_native.SharedHeap.anonymous(max_size))
            return
        try:
            self._set(_native.SharedHeap.named(_names.path_of(name), max_size))
        except FileExistsError:
            why = f"there is a heap named {name!r} already"
            raise FileExistsError(errno.EEXIST, why) from None

    @classmethod
    def open(cls, name: str) -> Self:
        """Attach to the heap that a process of this user has made with that name.

        Raises FileNotFoundError if there is none, PermissionError if the file belongs to somebody
        else or others may use it, ValueError if it is damaged, of another version of ungil, or no
        heap at all.
        """
        try:
            return cls._of(_native.SharedHeap.open(_names.path_of(name)))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, f"there is no heap named {name!r}") from None

    @classmethod
    def _of(cls, native: _native.SharedHeap) -> Self:
        heap = cls.__new__(cls)
        heap._set(native)
        return heap

    def _set(self, native: _native.SharedHeap) -> None:
        self._attached: _native.SharedHeap | None = native
        self._uuid = native.uuid
        self._name = native.path and _names.name_of(native.path)

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
    def root(self) -> _native.SharedDict:
        """The dict that every process with the heap finds."""
        return self._heap.root

    def share(self, given: object) -> object:
        """Return a shared object equal to `given`; `given` itself if it cannot change.

        Raises TypeError that names the place of what cannot be shared.
        """
        return self._heap.share(given)

    def atomic(self) -> _native.SharedTransaction:
        """Return what makes all changes in a `with` block one: others see all of them or none.

        If the block raises an exception, or the process is killed, nothing of it has happened.
        What the block reads is not changed by others until it ends. There is one such block at a
        time; others that begin wait. One inside of another is a part of it that can fail alone.
        """
        return self._heap.atomic()

    def gc(self) -> int | None:
        """Collect cycles and what killed processes left; return the bytes freed.

        None if other processes were busy for ten seconds.
        """
        collected = self._heap.gc()
        return None if collected is None else collected[0]

    def unlink(self) -> None:
        """Take the name away: nobody finds the heap by it any more, who is attached stays so.

        Raises FileNotFoundError if it has no name, or had it taken away already.
        """
        if not self._heap.unlink():
            what = "the heap has no name" if self._name is None else f"{self._name!r} has no heap"
            raise FileNotFoundError(errno.ENOENT, f"{what} that could be taken away")

    def close(self) -> None:
        """Let go of the heap. Objects of it that are in use keep the process attached."""
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


def attached(uuid: bytes, place: str) -> Heap:
    """Return the heap with that uuid, which a process found at `place`; what a pickled one calls.

    Raises FileNotFoundError if it is not there any more.
    """
    return Heap._of(_native.SharedHeap.find(uuid, place))  # pyright: ignore[reportPrivateUsage]


os.register_at_fork(
    before=_native.before_fork,
    after_in_parent=_native.after_fork_in_parent,
    after_in_child=_native.after_fork_in_child,
)
