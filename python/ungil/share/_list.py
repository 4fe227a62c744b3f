"""The shared list."""

import builtins
from collections.abc import Callable, Iterable, MutableSequence
from reprlib import recursive_repr
from typing import Any, Final, Self, SupportsIndex, TypeVar

from ungil import _native
from ungil.share._handle import Container, named
from ungil.share._monitor import Monitor

T = TypeVar("T")
T2 = TypeVar("T2")

# What it is compared with as a builtin one is.
_LISTS: Final = (builtins.list, _native.SharedList, _native.FrozenList)

# How often a sort is tried before nobody else may change the list.
_TRIES = 4


class list(Container, _native.QuickList[T], Monitor, MutableSequence[T]):
    """A list that every process with its heap sees and changes.

    It behaves as a builtin one does, but:

    * Make one with `Heap.share`, or by putting a list into a shared object. A class has no heap, so
      there is no `share.list(...)` to call.
    * What makes a new list (a slice, `copy`, `+`, `*`) makes an ordinary one, of the items of one
      moment. Shared objects in it stay shared.
    * Each method is one step for all other threads and processes: they see all of an `extend`, of
      an assignment to a slice or of a `sort`, or nothing; and `pop`, `incr` and `cas` take effect
      once.
    * An iteration reads one item after the other by its index, whatever happens meanwhile; for one
      moment's items iterate over a `copy()`.
    * `sort`, and `remove` of what only Python can compare, begin again if somebody changed the list
      meanwhile, and after some attempts keep others from it by a transaction.
    * Values that cannot change are copied both ways, so that only shared objects keep their
      identity; a NaN is never found again.
    """

    __slots__ = ()

    def copy(self) -> builtins.list[T]:
        """Copy it into an ordinary list; shared objects in it stay shared."""
        return self[:]

    def sort(self, *, key: Callable[[T], Any] | None = None, reverse: bool = False) -> None:
        """Put the items in order, as `list.sort` does.

        Raises ValueError if `key` or a comparison changes the list.
        """
        is_sorted = any(self._is_sorted_by(key, reverse) for _ in range(_TRIES))
        if not (is_sorted or self.alone(lambda: self._is_sorted_by(key, reverse))):
            raise ValueError("list modified during sort, by its key or by a comparison")

    def _is_sorted_by(self, key: Callable[[T], Any] | None, reverse: bool) -> bool:
        """Put the items in order, unless the list is changed meanwhile."""
        items, version = self.snapshot()
        keys: builtins.list[Any] = items if key is None else [key(item) for item in items]
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
        return self.reorder(version, order)

    def __add__(self, other: Iterable[T2]) -> builtins.list[T | T2]:
        if not isinstance(other, (list, builtins.list)):
            return NotImplemented
        mine: builtins.list[Any] = self[:]
        return mine + other[:]

    def __radd__(self, other: builtins.list[T2]) -> builtins.list[T | T2]:
        # pyright takes it for granted; Python does not.
        if not isinstance(other, builtins.list):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        before: builtins.list[Any] = other
        return before + self[:]

    def __iadd__(self, values: Iterable[T]) -> Self:
        self.extend(values)
        return self

    def __mul__(self, times: SupportsIndex) -> builtins.list[T]:
        return self[:] * times

    __rmul__ = __mul__

    def __imul__(self, times: SupportsIndex) -> Self:
        self.repeat(times)
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self[:] == other[:] if isinstance(other, _LISTS) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self[:] < other[:] if isinstance(other, _LISTS) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self[:] <= other[:] if isinstance(other, _LISTS) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self[:] > other[:] if isinstance(other, _LISTS) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self[:] >= other[:] if isinstance(other, _LISTS) else NotImplemented

    @recursive_repr("share.list([...])")
    def __repr__(self) -> str:
        return f"share.list({self[:]!r})"


named(list, "list")
_native.set_proxy("list", list)
