"""The shared deque."""

import builtins
import collections
from collections.abc import Iterable, MutableSequence
from reprlib import recursive_repr
from typing import Any, Self, SupportsIndex, TypeGuard

from ungil import _native
from ungil.share._handle import Container
from ungil.share._monitor import Monitor


# As of a builtin deque, `pop` takes no index.
class deque(Container, _native.SharedDeque, Monitor, MutableSequence[object]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A deque that every process with its heap sees and changes.

    Each method that changes it, and each operator with `=`, is one step, seen by others whole or
    not at all; the items to add are read before. What only computes (`+`, `*`, `<`, `copy`) does so
    with the items of one moment, and makes builtin deques.

    Iterating goes through the items that were there when it began, whatever others do meanwhile.
    `append`, `appendleft`, `pop`, `popleft`, and reading or replacing an item take a constant time;
    `insert`, `del`, `remove`, `rotate` and `reverse` copy the deque's cells of 16 bytes an item.
    """

    __slots__ = ()

    def copy(self) -> collections.deque[object]:
        """Copy it into a builtin deque; shared objects in it stay shared."""
        return collections.deque(self, self.maxlen)

    @recursive_repr("[...]")
    def __repr__(self) -> str:
        limit = "" if self.maxlen is None else f", maxlen={self.maxlen}"
        return f"share.deque({builtins.list(self)!r}{limit})"

    def __add__(self, other: "AnyDeque") -> collections.deque[object]:
        if not is_deque(other):
            return NotImplemented
        items = self.copy()
        items.extend(other)
        return items

    def __radd__(self, other: collections.deque[Any]) -> collections.deque[object]:
        if not is_deque(other):
            return NotImplemented
        items = other.copy()
        items.extend(self)
        return items

    def __mul__(self, times: SupportsIndex) -> collections.deque[object]:
        return self.copy() * times.__index__()

    __rmul__ = __mul__

    def __iadd__(self, items: Iterable[object]) -> Self:
        self.extend(items)
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return builtins.list(self) == builtins.list(other) if is_deque(other) else NotImplemented

    def __lt__(self, other: "AnyDeque") -> bool:
        return self.copy() < plain(other) if is_deque(other) else NotImplemented

    def __le__(self, other: "AnyDeque") -> bool:
        return self.copy() <= plain(other) if is_deque(other) else NotImplemented

    def __gt__(self, other: "AnyDeque") -> bool:
        return self.copy() > plain(other) if is_deque(other) else NotImplemented

    def __ge__(self, other: "AnyDeque") -> bool:
        return self.copy() >= plain(other) if is_deque(other) else NotImplemented


AnyDeque = deque | collections.deque[Any]


def is_deque(other: object) -> TypeGuard[AnyDeque]:
    """Tell whether operators of deques take this; as builtin ones do, they take nothing else."""
    return isinstance(other, (deque, collections.deque))


def plain(other: AnyDeque) -> collections.deque[object]:
    """Return a builtin deque with the items of any."""
    return other.copy() if isinstance(other, deque) else other


_native.set_proxy("deque", deque)
