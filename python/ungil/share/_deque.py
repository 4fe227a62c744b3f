"""The shared deque."""

import builtins
import collections
from collections.abc import Iterable, MutableSequence
from reprlib import recursive_repr
from typing import Any, Self, SupportsIndex, TypeAlias, TypeGuard, TypeVar

from ungil import _native
from ungil.share._handle import Container, named
from ungil.share._monitor import Monitor

T = TypeVar("T")
T2 = TypeVar("T2")


# As of a builtin deque, `pop` takes no index.
class deque(Container, _native.SharedDeque[T], Monitor, MutableSequence[T]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A deque that every process with its heap sees and changes.

    Each method that changes it, and each operator with `=`, is one step, seen by others whole or
    not at all; the items to add are read before. What only computes (`+`, `*`, `<`, `copy`) does so
    with the items of one moment, and makes builtin deques.

    Iterating goes through the items that were there when it began, whatever others do meanwhile.
    `append`, `appendleft`, `pop`, `popleft`, and reading or replacing an item take a constant time;
    `insert`, `del`, `remove`, `rotate` and `reverse` copy the deque's cells of 16 bytes an item.
    """

    __slots__ = ()

    def copy(self) -> collections.deque[T]:
        """Copy it into a builtin deque; shared objects in it stay shared."""
        return collections.deque(self, self.maxlen)

    @recursive_repr("[...]")
    def __repr__(self) -> str:
        limit = "" if self.maxlen is None else f", maxlen={self.maxlen}"
        return f"share.deque({builtins.list(self)!r}{limit})"

    def __add__(self, other: "AnyDeque[T2]") -> collections.deque[T | T2]:
        if not is_deque(other):
            return NotImplemented
        items: collections.deque[Any] = self.copy()
        items.extend(other)
        return items

    def __radd__(self, other: collections.deque[T2]) -> collections.deque[T | T2]:
        if not is_deque(other):
            return NotImplemented
        items: collections.deque[Any] = other.copy()
        items.extend(self)
        return items

    def __mul__(self, times: SupportsIndex) -> collections.deque[T]:
        return self.copy() * times.__index__()

    __rmul__ = __mul__

    def __iadd__(self, items: Iterable[T]) -> Self:
        self.extend(items)
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return builtins.list(self) == builtins.list(other) if is_deque(other) else NotImplemented

    def __lt__(self, other: "AnyDeque[Any]") -> bool:
        return self.copy() < plain(other) if is_deque(other) else NotImplemented

    def __le__(self, other: "AnyDeque[Any]") -> bool:
        return self.copy() <= plain(other) if is_deque(other) else NotImplemented

    def __gt__(self, other: "AnyDeque[Any]") -> bool:
        return self.copy() > plain(other) if is_deque(other) else NotImplemented

    def __ge__(self, other: "AnyDeque[Any]") -> bool:
        return self.copy() >= plain(other) if is_deque(other) else NotImplemented


AnyDeque: TypeAlias = deque[T] | collections.deque[T]


def is_deque(other: object) -> TypeGuard[AnyDeque[Any]]:
    """Tell whether operators of deques take this; as builtin ones do, they take nothing else."""
    return isinstance(other, (deque, collections.deque))


def plain(other: AnyDeque[T]) -> collections.deque[T]:
    """Return a builtin deque with the items of any."""
    return other.copy() if isinstance(other, deque) else other


named(deque, "deque")
_native.set_proxy("deque", deque)
