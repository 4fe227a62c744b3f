"""What is looked for in the place of a key of a type that no key is stored as.

A namedtuple, a number of numpy's or a Timestamp of pandas may equal a stored key. Its *stand-in* is
an object of the types that are stored, which equals it and has the same hash. Whatever equals the
one equals the other, so Python would find the same with both.
"""

import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from operator import index
from types import NoneType
from typing import Any, Final, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from ungil import _native
from ungil._native import FrozenSet, FrozenTuple

# Keys of these types are stored as they are.
_STORED: Final = frozenset(
    {
        *(NoneType, bool, int, float, complex, str, bytes, range),
        *(date, timedelta, timezone, ZoneInfo, Decimal, Fraction, UUID),
    }
)


# Of them nobody knows what is in them.
_TUPLE: Final[Any] = tuple
_FROZENSET: Final[Any] = frozenset


class _Lonely(Exception):
    """What was given equals nothing but itself."""


def stand_in(given: object, hashed: int) -> tuple[object, ...] | None:
    """Return the stand-in of something with this hash in a tuple; None if none is known.

    The tuple is empty for what equals nothing that is stored.
    """
    try:
        found = _plain(given)
    except _Lonely:
        return ()
    if found is not given and found == given and hash(found) == hashed:
        return (found,)
    return None


def _plain(given: object) -> object:
    """Return what may be the stand-in: the object itself if nothing is known of its type."""
    class_: type[Any] = type(given)
    try:
        return _way(class_)(given)
    except _Lonely:
        # Unless its class has an opinion of its own about what is in it.
        if class_.__eq__ in (object.__eq__, _TUPLE.__eq__, _FROZENSET.__eq__):
            raise
        return given
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return given


@lru_cache(256)
def _way(class_: type[Any]) -> Callable[[Any], object]:
    """Return what makes the stand-in of an instance of a class."""
    if class_ in _STORED:
        return _itself
    if class_.__eq__ is object.__eq__ and class_.__hash__ is object.__hash__:
        return _lonely
    for base, made in _MADE.items():
        if issubclass(class_, base):
            return made
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(class_, numpy.generic):
        # The item() of long ones is long, too.
        if issubclass(class_, numpy.longdouble):
            return float
        return complex if issubclass(class_, numpy.clongdouble) else numpy.generic.item
    if hasattr(class_, "__index__"):
        return index
    if issubclass(class_, Rational):
        return _rational
    if hasattr(class_, "__float__"):
        return float
    return complex if hasattr(class_, "__complex__") else _itself


def _itself(given: object) -> object:
    return given


def _lonely(given: object) -> object:
    # A heap may have that very object.
    if _native.is_shared(given):
        return given
    raise _Lonely


def _tuple(given: Any) -> object:
    return tuple(_plain(item) for item in _TUPLE.__iter__(given))


def _frozenset(given: Any) -> object:
    return frozenset(_plain(member) for member in _FROZENSET.__iter__(given))


def _zone(given: datetime | time) -> tzinfo | None:
    """Return a zone of a type that is stored, in which it is the same time."""
    if type(given.tzinfo) in (NoneType, timezone, ZoneInfo):
        return given.tzinfo
    offset = given.utcoffset()
    return None if offset is None else timezone(offset)


def _datetime(given: datetime) -> object:
    day, clock = _date(given), cast(time, _time(given.timetz()))
    return datetime.combine(day, clock.replace(tzinfo=_zone(given)))


def _date(given: date) -> date:
    return date(given.year, given.month, given.day)


def _time(given: time) -> object:
    clock = (given.hour, given.minute, given.second, given.microsecond)
    return time(*clock, tzinfo=_zone(given), fold=given.fold)


def _timedelta(given: timedelta) -> object:
    return timedelta(given.days, given.seconds, given.microseconds)


def _rational(given: Rational) -> object:
    return Fraction(int(given.numerator), int(given.denominator))


# Of a subclass, with what is its own left out.
_MADE: Final[dict[type, Callable[[Any], object]]] = {
    str: str.__str__,
    bytes: lambda given: bytes(memoryview(given)),
    int: int.__index__,
    float: float.__float__,
    complex: complex.__complex__,
    tuple: _tuple,
    FrozenTuple: lambda given: _tuple(given.copy()),
    frozenset: _frozenset,
    FrozenSet: lambda given: _frozenset(given.copy()),
    datetime: _datetime,
    date: _date,
    time: _time,
    timedelta: _timedelta,
    Decimal: Decimal,
    Fraction: Fraction,
    UUID: lambda given: UUID(int=given.int),
}


_native.set_stand_in(stand_in)
