"""The shared dict."""

import builtins
import time
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
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    NoReturn,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
)

from ungil import _native
from ungil.share._changes import await_change
from ungil.share._handle import Container, named
from ungil.share._monitor import Monitor

K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
K2 = TypeVar("K2")
V2 = TypeVar("V2")
# The part of a dict that a view is of.
P = TypeVar("P")


class _Keyed(Protocol[K, V_co]):
    def keys(self) -> Iterable[K]: ...
    def __getitem__(self, key: K, /) -> V_co: ...


_Part: TypeAlias = Literal["keys", "values", "items"]
_Pairs: TypeAlias = _Keyed[K, V] | Iterable[tuple[K, V]]


class dict(Container, _native.QuickDict[K, V], Monitor, MutableMapping[K, V]):
    """A dict that every process with its heap sees and changes.

    It behaves as a builtin one does, but:

    * Make one with `Heap.share`, or by putting a dict into a shared object. A class has no heap, so
      there is no `share.dict(...)` to call, and no `fromkeys`.
    * What makes a new mapping (`copy`, `|`) makes an ordinary dict, of the values of one moment.
      Shared objects in it stay shared.
    * Each method is one step for all other threads and processes: they see all of an `update` or
      nothing, and `setdefault`, `pop`, `popitem`, `incr` and `cas` take effect once. `cas(key,
      ABSENT, value)` puts in a key that is not there, `cas(key, value, ABSENT)` deletes one that
      has this value.
    * It may change during an iteration, which reads it in batches. A key that is there from the
      first step to the last is seen exactly once. What is put in after the first step is not seen,
      so the iteration ends. What is deleted or changed meanwhile may be seen as it was. For one
      moment's keys iterate over a `copy()`.
    * Values that cannot change are copied both ways, so that only shared objects keep their
      identity; a NaN is never found again.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[K]:
        return _walk(self, "keys", 1)

    def __reversed__(self) -> Iterator[K]:
        return _walk(self, "keys", -1)

    def keys(self) -> KeysView[K]:
        """Return a view of the keys."""
        return _Keys(self)

    def values(self) -> ValuesView[V]:
        """Return a view of the values."""
        return _Values(self)

    def items(self) -> ItemsView[K, V]:
        """Return a view of the pairs of key and value."""
        return _Items(self)

    def update(self, other: _Pairs[Any, Any] = (), /, **others: Any) -> None:
        """Set the values of a mapping or of pairs, and of keywords, in one step."""
        self.set_all(_ordinary(other, others))

    def wait_for(self, key: K, unlike: object = _native.ABSENT, timeout: float | None = None) -> V:
        """Wait until `key` has a value other than `unlike`, by default any, and return it.

        Changes inside a shared object do not count: see `share.wait_for_change`. The waiter looks
        at each change of the dict, and can miss a value that is `unlike` again by then. Raises
        TimeoutError if there was no such value within `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            version = _native.version(self)
            value = self.get(key, _native.ABSENT)
            if not isinstance(value, _native.Absent) and value is not unlike and value != unlike:
                return value
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{key!r} did not change within {timeout} s")
            _native.wait_for_change(self, version, left)

    async def await_for(self, key: K, unlike: object = _native.ABSENT) -> V:
        """Wait as `wait_for`, as a task of asyncio or trio."""
        while True:
            version = _native.version(self)
            value = self.get(key, _native.ABSENT)
            if not isinstance(value, _native.Absent) and value is not unlike and value != unlike:
                return value
            await await_change(self, version)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, _native.FrozenDict):
            return self.copy() == other
        if isinstance(other, (dict, builtins.dict)):
            return self.copy() == _copied(cast(Mapping[K, V], other))
        return NotImplemented

    def __or__(self, other: Mapping[K2, V2]) -> builtins.dict[K | K2, V | V2]:
        if not isinstance(other, (dict, builtins.dict)):
            return NotImplemented
        mine: builtins.dict[Any, Any] = self.copy()
        return mine | _copied(other)

    def __ror__(self, other: builtins.dict[K2, V2]) -> builtins.dict[K | K2, V | V2]:
        # pyright takes it for granted; Python does not.
        if not isinstance(other, builtins.dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        mine: builtins.dict[Any, Any] = self.copy()
        return other | mine

    def __ior__(self, other: _Pairs[K, V]) -> Self:
        self.set_all(_ordinary(other, {}))
        return self

    # Numpy's numbers do not make an array of it to compare it: they are not equal.
    __array_ufunc__: ClassVar[None] = None

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refuse: numpy and pandas would take the keys for the data."""
        raise TypeError("a shared dict is not an array: pass its copy() to numpy or pandas")

    @recursive_repr("share.dict({...})")
    def __repr__(self) -> str:
        return f"share.dict({self.copy()!r})"


def _copied(mapping: Mapping[K, V]) -> builtins.dict[K, V]:
    return mapping.copy() if isinstance(mapping, dict) else builtins.dict(mapping)


def _ordinary(pairs: _Pairs[Any, Any], others: builtins.dict[str, Any]) -> builtins.dict[Any, Any]:
    # Unlike a view of it, the copy of a shared dict is of one moment.
    given: Any = cast(Any, pairs).copy() if isinstance(pairs, dict) else pairs
    return builtins.dict(given, **others)


def _walk(mapping: dict[Any, Any], part: _Part, step: Literal[1, -1]) -> Iterator[Any]:
    return chain.from_iterable(mapping.walk(part, step))


class _View(MappingView, Generic[K, V, P]):
    __slots__ = ()
    _mapping: dict[K, V]
    _part: ClassVar[_Part]

    def __iter__(self) -> Iterator[P]:
        return _walk(self._mapping, self._part, 1)

    def __reversed__(self) -> Iterator[P]:
        return _walk(self._mapping, self._part, -1)

    @property
    def mapping(self) -> MappingProxyType[K, V]:
        """The dict, which cannot be changed through this."""
        return MappingProxyType(self._mapping)

    def __repr__(self) -> str:
        return f"share.dict.{self._part}({[*self]!r})"


class _Keys(_View[K, Any, K], KeysView[K]):
    __slots__ = ()
    _part = "keys"


class _Values(_View[Any, V, V], ValuesView[V]):
    __slots__ = ()
    _part = "values"


class _Items(_View[K, V, tuple[K, V]], ItemsView[K, V]):
    __slots__ = ()
    _part = "items"

    def __contains__(self, item: object) -> bool:
        # The class would take any other item apart, and fail.
        pair: Any = item
        return isinstance(item, tuple) and len(pair) == 2 and super().__contains__(pair)


named(dict, "dict")
_native.set_proxy("dict", dict)
