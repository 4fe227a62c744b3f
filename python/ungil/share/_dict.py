"""The shared dict.

It behaves as a builtin one does, but:

* It is made by `Heap.share`, or by putting a dict into a shared object. A class has no heap, so
  there is no `share.dict(...)` to call, and no `fromkeys`.
* What makes a new mapping (`copy`, `|`) makes an ordinary dict, of the values of one moment. Shared
  objects in it stay shared.
* Each method is one step for all other threads and processes: they see all of an `update` or
  nothing, and `setdefault`, `pop`, `popitem`, `incr` and `cas` take effect once.
  `cas(key, ABSENT, value)` puts in a key that is not there, `cas(key, value, ABSENT)` deletes one
  that has this value.
* It may change during an iteration, which reads it in batches. Each key is seen exactly once that
  is there from the first step to the last; what is put in after the first step is not seen, so that
  the iteration ends; what is deleted or changed meanwhile may be seen as it was. For one moment's
  keys iterate over a `copy()`.
* Values that cannot change are copied both ways, so that only shared objects keep their identity;
  a NaN is never found again.
"""

import builtins
from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MappingView,
    MutableMapping,
    ValuesView,
)
from itertools import chain
from reprlib import recursive_repr
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast

from ungil import _native
from ungil.share._handle import Container
from ungil.share._monitor import Monitor


class _Keyed(Protocol):
    def keys(self) -> Iterable[Any]: ...
    def __getitem__(self, key: Any, /) -> object: ...


_Part: TypeAlias = Literal["keys", "values", "items"]
_Pairs: TypeAlias = _Keyed | Iterable[Iterable[object]]


class dict(Container, _native.QuickDict, Monitor, MutableMapping[object, object]):
    """A dict that every process with its heap sees and changes."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        return _walk(self, "keys", 1)

    def __reversed__(self) -> Iterator[object]:
        return _walk(self, "keys", -1)

    def keys(self) -> KeysView[object]:
        """Return a view of the keys."""
        return _Keys(self)

    def values(self) -> ValuesView[object]:
        """Return a view of the values."""
        return _Values(self)

    def items(self) -> ItemsView[object, object]:
        """Return a view of the pairs of key and value."""
        return _Items(self)

    def update(self, other: _Pairs = (), /, **others: object) -> None:
        """Take over the values of a mapping or of pairs, and of keywords, in one step."""
        self.set_all(_ordinary(other, others))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, (dict, builtins.dict)):
            return self.copy() == _copied(cast(Mapping[Any, Any], other))
        return NotImplemented

    def __or__(self, other: Mapping[Any, Any]) -> builtins.dict[object, object]:
        if not isinstance(other, (dict, builtins.dict)):
            return NotImplemented
        return self.copy() | _copied(other)

    def __ror__(self, other: builtins.dict[Any, Any]) -> builtins.dict[object, object]:
        # pyright takes it for granted; Python does not.
        if not isinstance(other, builtins.dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return other | self.copy()

    def __ior__(self, other: _Pairs) -> "dict":
        self.set_all(_ordinary(other, {}))
        return self

    @recursive_repr("share.dict({...})")
    def __repr__(self) -> str:
        return f"share.dict({self.copy()!r})"


def _copied(mapping: Mapping[Any, Any]) -> builtins.dict[object, object]:
    return mapping.copy() if isinstance(mapping, dict) else builtins.dict(mapping)


def _ordinary(pairs: _Pairs, others: builtins.dict[str, object]) -> builtins.dict[object, object]:
    # Unlike a view of it, the copy of a shared dict is of one moment.
    given = pairs.copy() if isinstance(pairs, dict) else pairs
    return builtins.dict(given, **others)  # type: ignore[arg-type]


def _walk(mapping: dict, part: _Part, step: Literal[1, -1]) -> Iterator[object]:
    return chain.from_iterable(mapping.walk(part, step))


class _View(MappingView):
    __slots__ = ()
    _mapping: dict
    _part: ClassVar[_Part]

    def __iter__(self) -> Iterator[Any]:
        return _walk(self._mapping, self._part, 1)

    def __reversed__(self) -> Iterator[Any]:
        return _walk(self._mapping, self._part, -1)

    @property
    def mapping(self) -> MappingProxyType[object, object]:
        """The dict, which cannot be changed through this."""
        return MappingProxyType(self._mapping)

    def __repr__(self) -> str:
        return f"share.dict.{self._part}({[*self]!r})"


class _Keys(_View, KeysView[object]):
    __slots__ = ()
    _part = "keys"


class _Values(_View, ValuesView[object]):
    __slots__ = ()
    _part = "values"


class _Items(_View, ItemsView[object, object]):
    __slots__ = ()
    _part = "items"

    def __contains__(self, item: object) -> bool:
        # The class would take any other item apart, and fail.
        pair: Any = item
        return isinstance(item, tuple) and len(pair) == 2 and super().__contains__(pair)


_native.set_proxy("dict", dict)
