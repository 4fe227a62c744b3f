"""Heaps: memory that processes share."""

import os

from ungil import _native


class Heap:
    """Shared memory of at most `max_size` bytes, which grows as it is used.

    Children that are forked are attached to it. It lives as long as any process is.
    Raises ValueError for an impossible size.
    """

    def __init__(self, *, max_size: int) -> None:
        self._heap = _native.SharedHeap.anonymous(max_size)

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
        return self._heap.gc()


os.register_at_fork(
    before=_native.before_fork,
    after_in_parent=_native.after_fork_in_parent,
    after_in_child=_native.after_fork_in_child,
)
