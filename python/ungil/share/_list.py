"""The shared list.

It behaves as a builtin one does, but:

* It is made by `Heap.share`, or by putting a list into a shared object. A class has no heap, so
  there is no `share.list(...)` to call.
* What makes a new list (a slice, `copy`, `+`, `*`) makes an ordinary one, of the items of one
  moment. Shared objects in it stay shared.
* Each method is one step for all other threads and processes: they see all of an `extend`, of an
  assignment to a slice or of a `sort`, or nothing; and `pop`, `incr` and `cas` take effect once.
* An iteration reads one item after the other by its index, whatever happens meanwhile; for one
  moment's items iterate over a `copy()`.
* `sort` begins again if somebody changed the list meanwhile, and gives up after some attempts with
  the ValueError of a builtin list.
* Values that cannot change are copied both ways, so that only shared objects keep their identity;
  a NaN is never found again.
"""

import builtins
from collections.abc import Callable, Iterable, MutableSequence
from reprlib import recursive_repr
from typing import Any, SupportsIndex

from ungil import _native
from ungil.share._handle import Container
from ungil.share._monitor import Monitor

# How often a sort is tried.
_TRIES = 4


class list(Container, _native.QuickList, Monitor, MutableSequence[object]):
    """A list that every process with its heap sees and changes."""

    __slots__ = ()

    def copy(self) -> builtins.list[object]:
        """Copy it into an ordinary list; shared objects in it stay shared."""
        return self[:]

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Put the items in order, as `list.sort` does.

        Raises ValueError if it is changed all the time.
        """
        for _ in range(_TRIES):
            items, version = self.snapshot()
            keys: builtins.list[Any] = items if key is None else [key(item) for item in items]
            order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
            if self.reorder(version, order):
                return
        raise ValueError(
            f"list modified during sort: others changed it during each of {_TRIES} attempts"
        )

    def __add__(self, other: Iterable[object]) -> builtins.list[object]:
        if not isinstance(other, (list, builtins.list)):
            return NotImplemented
        return self[:] + other[:]

    def __radd__(self, other: builtins.list[object]) -> builtins.list[object]:
        # pyright takes it for granted; Python does not.
        if not isinstance(other, builtins.list):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return other + self[:]

    def __iadd__(self, values: Iterable[object]) -> "list":
        self.extend(values)
        return self

    def __mul__(self, times: SupportsIndex) -> builtins.list[object]:
        return self[:] * times

    __rmul__ = __mul__

    def __imul__(self, times: SupportsIndex) -> "list":
        self.repeat(times)
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self[:] == other[:] if isinstance(other, (list, builtins.list)) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self[:] < other[:] if isinstance(other, (list, builtins.list)) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self[:] <= other[:] if isinstance(other, (list, builtins.list)) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self[:] > other[:] if isinstance(other, (list, builtins.list)) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self[:] >= other[:] if isinstance(other, (list, builtins.list)) else NotImplemented

    @recursive_repr("share.list([...])")
    def __repr__(self) -> str:
        return f"share.list({self[:]!r})"


_native.set_proxy("list", list)
