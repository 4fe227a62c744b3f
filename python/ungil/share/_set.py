"""The shared set."""

import builtins
from collections.abc import Iterable, MutableSet
from collections.abc import Set as AbstractSet
from reprlib import recursive_repr
from typing import Any, Self, TypeGuard, TypeVar

from ungil import _native
from ungil.share._handle import Container, named
from ungil.share._monitor import Monitor

T = TypeVar("T")
T2 = TypeVar("T2")


class set(Container, _native.SharedSet[T], Monitor, MutableSet[T]):
    """A set that every process with its heap sees and changes.

    Each method that changes it, and each operator with `=`, is one step, seen by others whole or
    not at all, also if it has several arguments. What they give is read before, another shared set
    as of one moment. What only computes (`|`, `union`, `<=`, `copy`) does so with the members of
    one moment, and makes builtin sets.

    Iterating goes through the members that were there when it began, whatever others do meanwhile.

    Members are values that can be shared and hashed. So shared dicts, lists, sets and deques cannot
    be members, just as builtin ones cannot.
    """

    __slots__ = ()

    def copy(self) -> builtins.set[T]:
        """Copy it into a builtin set."""
        return builtins.set(self)

    @recursive_repr("share.set(...)")
    def __repr__(self) -> str:
        return f"share.set({self.copy() or ''})"

    # What a builtin set makes of another one.

    def union(self, *others: Iterable[T2]) -> builtins.set[T | T2]:
        """Return the members of this one and of all others, as a builtin set."""
        return self.copy().union(*others)

    def intersection(self, *others: Iterable[object]) -> builtins.set[T]:
        """Return the members that are in all others, as a builtin set."""
        return self.copy().intersection(*others)

    def difference(self, *others: Iterable[object]) -> builtins.set[T]:
        """Return the members that are in none of the others, as a builtin set."""
        return self.copy().difference(*others)

    def symmetric_difference(self, other: Iterable[T2], /) -> builtins.set[T | T2]:
        """Return what is in one of both, but not in the other, as a builtin set."""
        return self.copy().symmetric_difference(other)

    def isdisjoint(self, other: Iterable[object], /) -> bool:
        """Tell whether no member is in the other."""
        return self.copy().isdisjoint(other)

    def issubset(self, other: Iterable[object], /) -> bool:
        """Tell whether all members are in the other."""
        return self.copy().issubset(other)

    def issuperset(self, other: Iterable[object], /) -> bool:
        """Tell whether all of the other are members."""
        return self.copy().issuperset(other)

    def __or__(self, other: AbstractSet[T2]) -> builtins.set[T | T2]:
        return self.copy() | plain(other) if is_set(other) else NotImplemented

    def __and__(self, other: AbstractSet[object]) -> builtins.set[T]:
        return self.copy() & plain(other) if is_set(other) else NotImplemented

    def __sub__(self, other: AbstractSet[object]) -> builtins.set[T]:
        return self.copy() - plain(other) if is_set(other) else NotImplemented

    def __xor__(self, other: AbstractSet[T2]) -> builtins.set[T | T2]:
        return self.copy() ^ plain(other) if is_set(other) else NotImplemented

    def __ror__(self, other: AbstractSet[T2]) -> AbstractSet[T | T2]:
        return plain(other) | self.copy() if is_set(other) else NotImplemented

    def __rand__(self, other: AbstractSet[T2]) -> AbstractSet[T2]:
        return plain(other) & self.copy() if is_set(other) else NotImplemented

    def __rsub__(self, other: AbstractSet[T2]) -> AbstractSet[T2]:
        return plain(other) - self.copy() if is_set(other) else NotImplemented

    def __rxor__(self, other: AbstractSet[T2]) -> AbstractSet[T | T2]:
        return plain(other) ^ self.copy() if is_set(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.copy() == plain(other) if is_set(other) else NotImplemented

    def __lt__(self, other: AbstractSet[object]) -> bool:
        return self.copy() < plain(other) if is_set(other) else NotImplemented

    def __le__(self, other: AbstractSet[object]) -> bool:
        return self.copy() <= plain(other) if is_set(other) else NotImplemented

    def __gt__(self, other: AbstractSet[object]) -> bool:
        return self.copy() > plain(other) if is_set(other) else NotImplemented

    def __ge__(self, other: AbstractSet[object]) -> bool:
        return self.copy() >= plain(other) if is_set(other) else NotImplemented

    # Changes in place.

    def __ior__(self, other: AbstractSet[T]) -> Self:  # type: ignore[override,misc]
        if not is_set(other):
            return NotImplemented
        self.update(other)
        return self

    def __iand__(self, other: AbstractSet[object]) -> Self:
        if not is_set(other):
            return NotImplemented
        self.intersection_update(other)
        return self

    def __isub__(self, other: AbstractSet[object]) -> Self:
        if not is_set(other):
            return NotImplemented
        self.difference_update(other)
        return self

    def __ixor__(self, other: AbstractSet[T]) -> Self:  # type: ignore[override,misc]
        if not is_set(other):
            return NotImplemented
        self.symmetric_difference_update(other)
        return self


def is_set(other: object) -> TypeGuard[AbstractSet[Any]]:
    """Tell whether operators of sets take this. As builtin ones, they take no other iterables."""
    return isinstance(other, (builtins.set, frozenset, set))


def plain(other: AbstractSet[T]) -> AbstractSet[T]:
    """Return a builtin set with the members of any."""
    return other.copy() if isinstance(other, set) else other


named(set, "set")
_native.set_proxy("set", set)
