"""Immutable values of types that the heap does not know: taken apart, and put together again.

Each is a kind, a key and a payload of numbers, strings and tuples. Equal values have equal kinds
and keys, whatever their payloads, so that they find each other in dicts and sets. Numbers and
members of an IntEnum or a StrEnum equal values that the heap does know: they are *aliases* of
those, and their keys are those values.

Of subclasses only members of enums are values: what else a subclass adds would be lost.
"""

import os
import sys
from array import array
from collections import deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, EnumType, Flag
from fractions import Fraction
from functools import lru_cache
from pickle import dumps, loads
from typing import Any, Final, TypeAlias, cast, final
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ungil import _native
from ungil.share._frozen import FrozenDict, FrozenList, FrozenSet, FrozenTuple

# Kind, whether it is an alias, key, payload.
Parts: TypeAlias = tuple[int, bool, object, object]

# As they are stored.
_DATE: Final = 1
_TIME: Final = 2
_DATETIME: Final = 3
_TIMEDELTA: Final = 4
_TIMEZONE: Final = 5
_ZONE: Final = 6
_NUMBER: Final = 7
_UUID: Final = 8
_RANGE: Final = 9
_MEMBER: Final = 10
_PICKLED: Final = 11
# With the bit 16 in their kind: only comparing the objects tells which items of a list they equal.
_FROZEN: Final = 20
_OPINIONATED_MEMBER: Final = 26

_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000
# A Decimal with a larger exponent equals others only: integers would have to be written out.
_MOST_DIGITS: Final = 5_000


@final
class Pickled:
    """An object of any type, pickled: you say explicitly when to pickle and when to unpickle it.

    Reading it from a heap gives a `Pickled`; only `load` unpickles, so only `load` runs code that
    the pickle names. Two are equal if their bytes are.
    """

    __slots__ = ("_data",)

    def __init__(self, given: object) -> None:
        """Pickle an object; raises what pickle raises."""
        self._data = dumps(given)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Pickled":
        """Wrap what is pickled already."""
        made = cls.__new__(cls)
        made._data = data
        return made

    @property
    def data(self) -> bytes:
        """The pickle."""
        return self._data

    def load(self) -> object:
        """Unpickle the object, each time a new one. The pickle must come from a trusted source."""
        return loads(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pickled) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __reduce__(self) -> tuple[Callable[[bytes], "Pickled"], tuple[bytes]]:
        return Pickled.from_bytes, (self._data,)

    def __repr__(self) -> str:
        return f"<share.Pickled of {len(self._data)} bytes>"


class _Unfit(Exception):
    """Why something is no value: a sentence about it, without its subject's name."""


def _zone(zone: tzinfo | None) -> object:
    """Take a time zone apart: None, its offset and perhaps its name, or its key."""
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, *name = cast("tuple[timedelta, str]", zone.__getinitargs__())  # type: ignore[attr-defined]
        return (offset // _MICROSECOND, *name)
    if type(zone) is ZoneInfo:
        if zone.key is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise _Unfit("its ZoneInfo was read from a file and has no key")
        return zone.key
    name = type(zone).__qualname__
    raise _Unfit(f"its tzinfo is of type {name}, neither datetime.timezone nor zoneinfo.ZoneInfo")


def _zoned(parts: object) -> tzinfo | None:
    if parts is None:
        return None
    if isinstance(parts, str):
        return ZoneInfo(parts)
    offset, *name = cast("tuple[int, str]", parts)
    return timezone(timedelta(microseconds=offset), *name)


def _date(given: date) -> Parts:
    return _DATE, False, given.toordinal(), None


def _time(given: time) -> Parts:
    minutes = given.hour * 60 + given.minute
    clock = (minutes * 60 + given.second) * 1_000_000 + given.microsecond
    zone = _zone(given.tzinfo)
    offset = given.utcoffset()
    # With a zone in which the offset depends on the date, it equals what has no zone.
    key = (clock,) if offset is None else clock - offset // _MICROSECOND
    return _TIME, False, key, (clock, given.fold, zone)


def _datetime(given: datetime) -> Parts:
    zone = _zone(given.tzinfo)
    wall = (given.replace(tzinfo=None, fold=0) - datetime.min) // _MICROSECOND
    offset = given.utcoffset()
    if offset is None:
        key: object = (wall,)
    elif offset != given.replace(fold=1 - given.fold).utcoffset():
        # An hour that comes twice, or not at all, equals only the same one in the same zone
        # (PEP 495, "Inter-zone comparison").
        key = (wall, zone)
    else:
        key = wall - offset // _MICROSECOND
    return _DATETIME, False, key, (wall, given.fold, zone)


def _timedelta(given: timedelta) -> Parts:
    return _TIMEDELTA, False, given // _MICROSECOND, None


def _timezone(given: timezone) -> Parts:
    parts = cast("tuple[object, ...]", _zone(given))
    return _TIMEZONE, False, parts[0], parts


def _zoneinfo(given: ZoneInfo) -> Parts:
    return _ZONE, False, _zone(given), None


def _number(above: int, below: int, payload: object) -> Parts:
    """Find the number that the heap knows and that equals this one, if there is any."""
    if below == 1:
        return _NUMBER, True, above, payload
    try:
        near = above / below
    except OverflowError:
        near = 0.0
    if near.as_integer_ratio() == (above, below):
        return _NUMBER, True, near, payload
    return _NUMBER, False, (above, below), payload


def _decimal(given: Decimal) -> Parts:
    payload = str(given)
    sign, digits, exponent = given.as_tuple()
    if not isinstance(exponent, int):
        return _NUMBER, True, float("nan") if given.is_nan() else float(given), payload
    # Without zeros at its end a number is written in one way only.
    short = "".join(map(str, digits)).rstrip("0")
    ends = exponent + len(digits) - len(short)
    if short and abs(ends) > _MOST_DIGITS:
        return _NUMBER, False, (sign, short, ends), payload
    return _number(*given.as_integer_ratio(), payload) if short else (_NUMBER, True, 0, payload)


def _fraction(given: Fraction) -> Parts:
    parts = given.as_integer_ratio()
    return _number(*parts, parts)


def _uuid(given: UUID) -> Parts:
    return _UUID, False, given.bytes, given.is_safe.value


def _range(given: range) -> Parts:
    # Ranges are equal if they have the same numbers, so what is never reached does not count.
    key: tuple[int, ...] = ()
    if given:
        key = (given[0],) if given[0] == given[-1] else (given[0], given[-1], given.step)
    return _RANGE, False, key, (given.start, given.stop, given.step)


def _pickled(given: Pickled) -> Parts:
    return _PICKLED, False, given.data, None


def _frozen(given: object) -> Parts:
    path, here, uuid, *where = cast("tuple[Any, ...]", _native.frozen_parts(given))
    places = (None if path is None else os.fsencode(path), os.fsencode(here))
    return _FROZEN, False, (uuid, *where), places


_APART: Final[dict[type, Callable[..., Parts]]] = {
    date: _date,
    time: _time,
    datetime: _datetime,
    timedelta: _timedelta,
    timezone: _timezone,
    ZoneInfo: _zoneinfo,
    Decimal: _decimal,
    Fraction: _fraction,
    UUID: _uuid,
    range: _range,
    Pickled: _pickled,
    FrozenDict: _frozen,
    FrozenList: _frozen,
    FrozenTuple: _frozen,
    FrozenSet: _frozen,
}


def _enum(module: str, name: str) -> EnumType | None:
    """Find an enum among what this process has imported, without running any code."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, EnumType) else None


# Types whose members of an enum equal what they are named after.
_NAMED: Final = (int, str, float, bytes, complex, bool)
# How these compare, and how an enum does by itself.
_SIMPLE_OPINIONS: Final = (*(type_.__eq__ for type_ in (object, *_NAMED)),)


def _member(given: Enum) -> Parts:
    cls = type(given)
    # What multiprocessing calls the main program in a child that it spawned.
    module = "__main__" if cls.__module__ == "__mp_main__" else cls.__module__
    if _enum(module, cls.__qualname__) is not cls:
        raise _Unfit(
            f"it is of an enum that other processes cannot import as {module}.{cls.__qualname__}"
        )
    # A flag may be several members at once.
    known: object = given.value if isinstance(given, Flag) else given.name
    payload = (module, cls.__qualname__, known)
    value: object = given.value
    is_alias = type(value) in _NAMED and given == value
    kind = _MEMBER if cls.__eq__ in _SIMPLE_OPINIONS else _OPINIONATED_MEMBER
    return kind, is_alias, value if is_alias else payload, payload


# What arrays have, and pandas' series.
_ARRAYS: Final = ("__array_interface__", "__array__")
# What a subclass of one of these becomes when the builtin is called.
_BUILTINS: Final[tuple[type, ...]] = (
    *(dict, list, tuple, set, frozenset, deque, str, bytes, int, float, complex),
    *(Decimal, Fraction),
)
# What to do with those of numpy's scalars whose item() is none of Python's numbers and times.
_SCALARS: Final = {
    **dict.fromkeys(("longdouble", "float128"), "use float() of it"),
    **dict.fromkeys(("clongdouble", "complex256"), "use complex() of it"),
    "datetime64": "use its astype('M8[us]').item()",
    "timedelta64": "use its astype('m8[us]').item()",
}
# What pandas has in the place of None.
_MISSING: Final = ("NaTType", "NAType")
# What a subclass of one of these has to be made anew as, a `datetime` before a `date`.
_TIMES: Final[tuple[type, ...]] = (datetime, date, time, timedelta)


def _base(class_: type, known: tuple[type, ...]) -> type | None:
    return next((base for base in known if issubclass(class_, base)), None)


# What is only looked for as a key is asked about again and again.
@lru_cache(256)
def _refused(class_: type[Any]) -> str:
    """Say that a type is not known, and what to do with an object of it."""
    name = class_.__name__
    if any((base.__module__, base.__name__) == ("numpy", "generic") for base in class_.__mro__):
        # Not share.array(): of an integer it would make as many zeros.
        remedy = _SCALARS.get(name, "use its item()")
        return f"it is a numpy scalar, of type {name}; {remedy} instead"
    if name in _MISSING:
        return f"it is of type {name}; share None in its place"
    builtin = _base(class_, _BUILTINS)
    times = _base(class_, _TIMES)
    if hasattr(class_, "__dataclass_fields__"):
        remedy = "declare the class with @share.struct instead of @dataclass"
    elif hasattr(class_, "__dataframe__"):
        remedy = "share a dict of its columns, each as a list or as share.array(...)"
    elif class_ is bytearray:
        remedy = "copy it into the heap with share.buffer(...)"
    elif class_ in (array, memoryview) or any(hasattr(class_, name) for name in _ARRAYS):
        # A slice of a shared array is of this type, too: it would be copied unasked.
        remedy = "copy it into the heap with share.array(...)"
    elif hasattr(class_, "__fspath__"):
        remedy = "share str() of it"
    elif builtin is not None:
        remedy = f"share {builtin.__name__}() of it"
    elif times is not None:
        remedy = f"share a plain {times.__name__}"
    else:
        remedy = "declare its class with @share.struct if it is yours, share its parts"
    return f"it is of type {name}; {remedy}, or wrap it in share.Pickled"


def _apart(given: object) -> Parts | str:
    """Take an object apart, or say why that cannot be done and what to do."""
    apart = _APART.get(type(given))
    try:
        if apart is not None:
            return apart(given)
        return _member(given) if isinstance(given, Enum) else _refused(type(given))
    except _Unfit as reason:
        return str(reason)


def _together_date(key: int, _: object) -> date:
    return date.fromordinal(key)


def _together_time(_: object, payload: tuple[int, int, object]) -> time:
    clock, fold, zone = payload
    made = (datetime.min + timedelta(microseconds=clock % _DAY)).time()
    return made.replace(tzinfo=_zoned(zone), fold=fold)


def _together_datetime(_: object, payload: tuple[int, int, object]) -> datetime:
    wall, fold, zone = payload
    return (datetime.min + timedelta(microseconds=wall)).replace(tzinfo=_zoned(zone), fold=fold)


def _together_timedelta(key: int, _: object) -> timedelta:
    return timedelta(microseconds=key)


def _together_timezone(_: object, payload: object) -> tzinfo | None:
    return _zoned(payload)


def _together_zone(key: str, _: object) -> ZoneInfo:
    return ZoneInfo(key)


def _together_number(_: object, payload: str | tuple[int, int]) -> Decimal | Fraction:
    return Decimal(payload) if isinstance(payload, str) else Fraction(*payload)


def _together_uuid(key: bytes, payload: int | None) -> UUID:
    return UUID(bytes=key, is_safe=SafeUUID(payload))


def _together_range(_: object, payload: tuple[int, int, int]) -> range:
    return range(*payload)


def _together_member(_: object, payload: tuple[str, str, object]) -> Enum:
    module, name, known = payload
    cls = _enum(module, name)
    if cls is None:
        raise ImportError(
            f"a member of the enum {module}.{name} was shared: import {module} to read it",
            name=module,
        )
    if isinstance(known, str):
        found = cast("dict[str, Enum]", cls.__members__).get(known)
        if found is None:
            raise ImportError(f"{module}.{name} has no member {known} here", name=module)
        return found
    return cast("Callable[[object], Enum]", cls)(known)


def _together_pickled(key: bytes, _: object) -> Pickled:
    return Pickled.from_bytes(key)


def _together_frozen(
    key: tuple[int, int, int, tuple[int, int, int] | None], payload: tuple[bytes | None, bytes]
) -> object:
    path, here = (None if place is None else os.fsdecode(place) for place in payload)
    return _native.receive_frozen(path, cast(str, here), *key)


_TOGETHER: Final[dict[int, Callable[..., object]]] = {
    _DATE: _together_date,
    _TIME: _together_time,
    _DATETIME: _together_datetime,
    _TIMEDELTA: _together_timedelta,
    _TIMEZONE: _together_timezone,
    _ZONE: _together_zone,
    _NUMBER: _together_number,
    _UUID: _together_uuid,
    _RANGE: _together_range,
    _MEMBER: _together_member,
    _OPINIONATED_MEMBER: _together_member,
    _PICKLED: _together_pickled,
    _FROZEN: _together_frozen,
}


def _together(kind: int, key: object, payload: object) -> object:
    try:
        return _TOGETHER[kind](key, payload)
    except ZoneInfoNotFoundError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RuntimeError(
            "the heap is damaged: a value consists of parts that do not fit together"
        ) from error


# Of these one object may be given to all who read the same value: they never change.
_LASTING: Final = [_DATE, _TIME, _DATETIME, _TIMEDELTA, _TIMEZONE, _ZONE, _NUMBER, _UUID, _RANGE]

_native.set_values(_apart, _together, _LASTING, _MEMBER)
