"""Python objects in shared memory, used by processes as threads use objects.

    heap = share.Heap(max_size=1 << 30)
    heap.root["counts"] = {}

Docs: `docs/sharing.md`.
"""

import os
from collections.abc import MutableMapping, MutableSequence

from ungil import _native


class dict(_native.SharedDict, MutableMapping):
    """A dict that every process with its heap sees and changes."""

    __slots__ = ()

    def __iter__(self):
        return iter([key for key, _ in self._pairs()])

    def __repr__(self):
        return f"share.dict({self.copy()!r})"

    def copy(self):
        return {key: value for key, value in self._pairs()}


class list(_native.SharedList):
    """A list that every process with its heap sees and changes."""

    __slots__ = ()

    def __repr__(self):
        return f"share.list({self[:]!r})"


MutableSequence.register(list)


class Heap(_native.SharedHeap):
    def __new__(cls, max_size):
        return cls.anonymous(max_size)


_native.set_proxy("dict", dict)
_native.set_proxy("list", list)
os.register_at_fork(
    before=_native.before_fork,
    after_in_parent=_native.after_fork_in_parent,
    after_in_child=_native.after_fork_in_child,
)
