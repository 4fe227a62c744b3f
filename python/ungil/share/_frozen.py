"""Structures that never change, read by any number of processes without a lock."""

from __future__ import annotations

import os
from collections.abc import (
    Callable,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)
from typing import Any, TypeVar, overload

from ungil import _native
from ungil._native import FrozenDict, FrozenList, FrozenSet, FrozenTuple

__all__ = ["FrozenDict", "FrozenList", "FrozenSet", "FrozenTuple", "freeze", "frozen"]

K = TypeVar("K")
V = TypeVar("V")

_Path = str | os.PathLike[str]
_Progress = Callable[[int], object]


@overload
def freeze(
    obj: dict[K, V], path: _Path | None = None, *, progress: _Progress | None = None
) -> FrozenDict[K, V]: ...
@overload
def freeze(
    obj: list[V], path: _Path | None = None, *, progress: _Progress | None = None
) -> FrozenList[V]: ...
@overload
def freeze(
    obj: tuple[V, ...], path: _Path | None = None, *, progress: _Progress | None = None
) -> FrozenTuple[V]: ...
@overload
def freeze(
    obj: set[V] | frozenset[V], path: _Path | None = None, *, progress: _Progress | None = None
) -> FrozenSet[V]: ...
@overload
def freeze(obj: object, path: _Path | None = None, *, progress: _Progress | None = None) -> Any: ...
def freeze(obj: object, path: _Path | None = None, *, progress: _Progress | None = None) -> object:
    """Make an immutable copy of a dict, list, tuple or set, with everything in it.

    Any number of processes read this one copy, without a lock. It can contain what a heap can,
    except structs and locks. Without `path` it is in memory, and ends with the last process that
    has it; with one, it is in that file, which replaces an older one when it is complete.
    `progress` is called with the number of bytes written so far, about every 4 MB.

    Raises TypeError that names the place of what cannot be frozen, OSError if the file cannot be
    written, MemoryError.
    """
    return _native.freeze(obj, path, progress)


def frozen(path: _Path, *, verify: bool = False) -> Any:
    """Map a file that `freeze` made; return the dict, list, tuple or set in it.

    It reads only the beginning and the end of the file, checks their checksums, and takes no longer
    for a large file. With `verify` it reads all of it and compares it to its checksum.

    Raises OSError if the file does not exist, ValueError if it is not a frozen file, has another
    version, or is cut off or damaged.
    """
    return _native.open_frozen(path, verify)


class FrozenKeys(KeysView[Any]):
    """The keys of a FrozenDict."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mapping)

    def __reversed__(self) -> Iterator[Any]:
        return _walk(self._mapping, "keys", -1)


class FrozenValues(ValuesView[Any]):
    """The values of a FrozenDict."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return _walk(self._mapping, "values", 1)

    def __reversed__(self) -> Iterator[Any]:
        return _walk(self._mapping, "values", -1)


class FrozenItems(ItemsView[Any, Any]):
    """The pairs of a FrozenDict."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return _walk(self._mapping, "items", 1)

    def __reversed__(self) -> Iterator[Any]:
        return _walk(self._mapping, "items", -1)


def _walk(mapping: Any, part: str, step: int) -> Iterator[Any]:
    return mapping.walk(part, step)


def _received(*parts: Any) -> object:
    """Return the frozen object of a handle; what a pickled one calls."""
    return _native.receive_frozen(*parts)


def _refusal(name: str) -> Callable[..., None]:
    """Make the method in the place of one that changes the builtin."""

    def refused(self: object, *_: object, **__: object) -> None:
        """Refuse: this never changes."""
        raise TypeError(
            f"a {type(self).__name__} never changes, so it has no {name}(): change an ordinary "
            "copy, from its thaw(), and freeze that"
        )

    refused.__name__ = name
    return refused


# What changes a builtin and is not written with brackets.
_CHANGES: dict[type, tuple[str, ...]] = {
    FrozenDict: ("clear", "pop", "popitem", "setdefault", "update", "__ior__"),
    FrozenList: (
        *("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"),
        *("__iadd__", "__imul__"),
    ),
    FrozenSet: (
        *("add", "clear", "discard", "pop", "remove", "update"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
        *("__iand__", "__ior__", "__isub__", "__ixor__"),
    ),
}

for _class, _names in _CHANGES.items():
    for _name in _names:
        setattr(_class, _name, _refusal(_name))

_ABSTRACT: list[tuple[Any, type]] = [
    (Mapping, FrozenDict),
    (Sequence, FrozenList),
    (Sequence, FrozenTuple),
    (Set, FrozenSet),
]
for _abstract, _class in _ABSTRACT:
    _abstract.register(_class)
_native.set_frozen_views(
    {"keys": FrozenKeys, "values": FrozenValues, "items": FrozenItems}, _received
)
