"""Python objects in shared memory, used by processes as threads use objects.

    heap = share.Heap(max_size=1 << 30)
    heap.root["counts"] = {"seen": 0}
    os.fork()
    heap.root["counts"].incr("seen")  # in both processes, none lost

Dicts and lists that are put into a shared object become shared, with all that is in them; str,
bytes, int, float, complex, bool, None, tuple and frozenset are copied both ways. A slice of a
shared list is an ordinary list.
"""

import builtins
import os
from collections.abc import Iterator, MutableMapping

from ungil import _native

__all__ = ["Heap", "dict", "list"]


class dict(_native.SharedDict, MutableMapping[object, object]):
    """A dict that every process with its heap sees and changes."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        return iter([key for key, _ in self.pairs()])

    def copy(self) -> builtins.dict[object, object]:
        """Copy it into an ordinary dict; shared objects in it stay shared."""
        return builtins.dict(self.pairs())

    def __repr__(self) -> str:
        return f"share.dict({self.copy()!r})"


class list(_native.SharedList):
    """A list that every process with its heap sees and changes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"share.list({self[:]!r})"


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

    def gc(self) -> int | None:
        """Collect cycles and what killed processes left; return the bytes freed.

        None if other processes were busy for ten seconds.
        """
        return self._heap.gc()


_native.set_proxy("dict", dict)
_native.set_proxy("list", list)
os.register_at_fork(
    before=_native.before_fork,
    after_in_parent=_native.after_fork_in_parent,
    after_in_child=_native.after_fork_in_child,
)
