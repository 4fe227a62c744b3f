"""The shared set."""

import builtins
from collections.abc import Callable, Iterable, MutableSet
from collections.abc import Set as AbstractSet
from reprlib import recursive_repr
from typing import Any, Self, TypeGuard, TypeVar

from ungil import _native
from ungil.share._handle import Container, named
from ungil.share._monitor import Monitor

T = TypeVar("T")
T2 = TypeVar("T2")
R = TypeVar("R")


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
        if others and (few := _fewer(others[0], self)) is not None:
            return _common(self, few).intersection(*others[1:])
        return self.copy().intersection(*others)

    def difference(self, *others: Iterable[object]) -> builtins.set[T]:
        """Return the members that are in none of the others, as a builtin set."""
        return self.copy().difference(*others)

    def symmetric_difference(self, other: Iterable[T2], /) -> builtins.set[T | T2]:
        """Return what is in one of both, but not in the other, as a builtin set."""
        return self.copy().symmetric_difference(other)

    def isdisjoint(self, other: Iterable[object], /) -> bool:
        """Tell whether no member is in the other."""
        if (few := _fewer(other, self)) is not None:
            return not _at_one_moment(self, lambda members: any(map(members.__contains__, few)))
        return self.copy().isdisjoint(other)

    def issubset(self, other: Iterable[object], /) -> bool:
        """Tell whether all members are in the other."""
        if is_set(other) and len(self) > len(other):
            return False
        if isinstance(other, set):
            return other.issuperset(self.copy())
        return self.copy().issubset(other)

    def issuperset(self, other: Iterable[object], /) -> bool:
        """Tell whether all of the other are members."""
        if (few := _fewer(other, self)) is not None:
            return _has_all(self, few)
        return self.copy().issuperset(other)

    def __or__(self, other: AbstractSet[T2]) -> builtins.set[T | T2]:
        return self.copy() | plain(other) if is_set(other) else NotImplemented

    def __and__(self, other: AbstractSet[object]) -> builtins.set[T]:
        if not is_set(other):
            return NotImplemented
        if isinstance(other, set) and len(self) < len(other):
            return _common(other, self.copy())
        few = _fewer(other, self)
        return self.copy() & plain(other) if few is None else _common(self, few)

    def __sub__(self, other: AbstractSet[object]) -> builtins.set[T]:
        return self.copy() - plain(other) if is_set(other) else NotImplemented

    def __xor__(self, other: AbstractSet[T2]) -> builtins.set[T | T2]:
        return self.copy() ^ plain(other) if is_set(other) else NotImplemented

    def __ror__(self, other: AbstractSet[T2]) -> AbstractSet[T | T2]:
        return plain(other) | self.copy() if is_set(other) else NotImplemented

    def __rand__(self, other: AbstractSet[T2]) -> AbstractSet[T2]:
        if (few := _fewer(other, self)) is not None and is_set(other):
            made: Any = frozenset if isinstance(other, frozenset) else builtins.set
            return made(_common(self, few))
        return plain(other) & self.copy() if is_set(other) else NotImplemented

    def __rsub__(self, other: AbstractSet[T2]) -> AbstractSet[T2]:
        return plain(other) - self.copy() if is_set(other) else NotImplemented

    def __rxor__(self, other: AbstractSet[T2]) -> AbstractSet[T | T2]:
        return plain(other) ^ self.copy() if is_set(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not is_set(other):
            return NotImplemented
        return len(self) == len(other) and self.copy() == plain(other)

    def __lt__(self, other: AbstractSet[object]) -> bool:
        if is_set(other) and len(self) >= len(other):
            return False
        if isinstance(other, set):
            return other > self.copy()
        return self.copy() < plain(other) if is_set(other) else NotImplemented

    def __le__(self, other: AbstractSet[object]) -> bool:
        return self.issubset(other) if is_set(other) else NotImplemented

    def __gt__(self, other: AbstractSet[object]) -> bool:
        if not is_set(other):
            return NotImplemented
        if (few := _fewer(other, self)) is not None:
            return _has_all(self, few, and_more=True)
        return self.copy() > plain(other)

    def __ge__(self, other: AbstractSet[object]) -> bool:
        return self.issuperset(other) if is_set(other) else NotImplemented

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


# What is as long as it says, and can be read twice.
_SIZED = (builtins.set, frozenset, set, builtins.dict, builtins.list, tuple)
# Of these a shared set finds each at once. It compares others with each member.
_FOUND_AT_ONCE = frozenset((int, float, complex, bool, str, bytes, tuple, type(None)))


def _fewer(other: Any, than: set[Any]) -> AbstractSet[Any] | None:
    """Return what is in another one, if it is less: it is looked up then, and nothing is copied."""
    if not isinstance(other, _SIZED) or len(other) >= len(than):  # pyright: ignore
        return None
    try:
        few: Any = plain(other) if is_set(other) else frozenset(other)  # pyright: ignore
    except TypeError:  # Some have no hash. How far a builtin set comes before those, it knows.
        return None
    return few if _FOUND_AT_ONCE.issuperset(map(type, few)) else None


def _at_one_moment(members: set[T], look: Callable[[AbstractSet[T]], R]) -> R:
    """Return what is found in a set, as it was at one moment, with a copy only if it changes."""
    version = _native.version(members)
    found = look(members)
    return found if _native.version(members) == version else look(members.copy())


def _common(members: set[Any], few: AbstractSet[Any]) -> builtins.set[Any]:
    return _at_one_moment(members, lambda those: {it for it in few if it in those})


def _has_all(members: set[Any], few: AbstractSet[Any], *, and_more: bool = False) -> bool:
    def look(those: AbstractSet[Any]) -> bool:
        return len(those) >= len(few) + and_more and all(map(those.__contains__, few))

    return _at_one_moment(members, look)


named(set, "set")
_native.set_proxy("set", set)
