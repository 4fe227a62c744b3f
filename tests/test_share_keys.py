"""Keys of types that none is stored as find what Python finds by them, wherever keys are kept."""

import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy
import pytest

from ungil import share


class Place(NamedTuple):
    host: str
    port: int


class Name(str):
    pass


class Loud(str):
    """Equals what is written in small letters."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class Raw(bytes):
    pass


class Members(frozenset[Any]):
    pass


class Amount(Decimal):
    pass


class Share(Fraction):
    pass


class Id(UUID):
    pass


class Stamp(datetime.datetime):
    """As one of pandas, it compares by itself."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


class Day(datetime.date):
    pass


class Clock(datetime.time):
    pass


class Span(datetime.timedelta):
    pass


class Zone(datetime.tzinfo):
    """Not one of the standard library's."""

    def utcoffset(self, dt: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=2)

    def dst(self, dt: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(0)

    def tzname(self, dt: datetime.datetime | None) -> str:
        return "two"


class Level(enum.IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Twin:
    """Of no type that anything is stored as, and equal to what it says."""

    of: object

    def __eq__(self, other: object) -> bool:
        return self.of == other

    def __hash__(self) -> int:
        return hash(self.of)


UTC = datetime.UTC
NOON = datetime.datetime(2024, 5, 1, 12, 30, 1, 5)
NOON_UTC = NOON.replace(tzinfo=UTC)

STORED: list[Any] = [
    *(1.5, 1, 7, 2**80, 1 + 2j, "name", "a longer name of many letters", b"raw", None),
    *(("sw1", 22), (1, "a"), (("sw1", 22), NOON), frozenset({1, "a"}), tuple(range(300))),
    *(NOON, NOON_UTC, NOON.date(), NOON.time(), datetime.timedelta(1, 2, 3)),
    *(Decimal("2.5"), Fraction(1, 3), UUID(int=5)),
]

FOUND: list[Any] = [
    *(numpy.float64(1.5), numpy.float32(1.5), numpy.bool_(True), numpy.int64(7), numpy.uint8(7)),
    *(numpy.longdouble(1.5), numpy.clongdouble(1 + 2j), numpy.longdouble(2.0**80)),
    *(numpy.complex128(1 + 2j), numpy.str_("name"), numpy.bytes_(b"raw"), Level.LOW),
    *(Name("name"), Name("a longer name of many letters"), Loud("NAME"), Raw(b"raw")),
    *(Place("sw1", 22), (numpy.int64(1), "a"), (1, Name("a"))),
    *((Place("sw1", 22), Stamp(2024, 5, 1, 12, 30, 1, 5)), Members({1, "a"})),
    *(frozenset({numpy.int64(1), "a"}), frozenset({Name("a"), True})),
    *(Stamp(2024, 5, 1, 12, 30, 1, 5), Stamp(2024, 5, 1, 12, 30, 1, 5, UTC)),
    *(Stamp(2024, 5, 1, 14, 30, 1, 5, Zone()), NOON_UTC.astimezone(Zone())),
    *(Day(2024, 5, 1), Clock(12, 30, 1, 5), Span(1, 2, 3)),
    *(Amount("2.5"), Share(1, 3), Id(int=5)),
    *(Twin(7), Twin("name"), Twin(("sw1", 22)), (1, Twin("a")), frozenset({Twin(1), "a"})),
    *(share.freeze(("sw1", 22)), share.freeze(tuple(range(300)))),
    *(share.freeze([frozenset({1, "a"})])[0], (share.freeze(("sw1", 22)), NOON)),
]

MISSED: list[Any] = [
    *(numpy.float64("nan"), numpy.int64(8), numpy.float64(7.25), numpy.float32(0.1), Name("sw1")),
    *(
        Place("sw1", 23),
        Place("sw1", 22)[:1],
        (numpy.int64(2), "a"),
        object(),
        (object(), "a"),
        len,
    ),
    *(Stamp(2024, 5, 2), Raw(b""), Members(), Twin(8), Twin("x")),
    *(share.freeze(("sw2", 22)), (Name("sw2"), 22), Loud("OTHER"), NOON.replace(tzinfo=Zone())),
]


def frozen_dict(keys: list[Any]) -> Any:
    return share.freeze(dict(zip(keys, map(repr, keys), strict=True)))


def shared_dict(keys: list[Any]) -> Any:
    return share.Heap(max_size=1 << 22).share(dict(zip(keys, map(repr, keys), strict=True)))


def frozen_set(keys: list[Any]) -> Any:
    return share.freeze(set(keys))


def shared_set(keys: list[Any]) -> Any:
    return share.Heap(max_size=1 << 22).share(set(keys))


def frozen_list(keys: list[Any]) -> Any:
    return share.freeze(keys)


def shared_list(keys: list[Any]) -> Any:
    return share.Heap(max_size=1 << 22).share(keys)


# Of these it depends on numpy's version.
EITHER: list[Any] = [
    numpy.datetime64("2024-05-01T12:30:01.000005"),
    numpy.timedelta64(86402000003, "us"),
]
KEYS = FOUND + MISSED + EITHER


def kind(key: Any) -> str:
    return type(key).__name__


@pytest.mark.parametrize("kept", [frozen_dict, shared_dict])
@pytest.mark.parametrize("key", KEYS, ids=kind)
def test_a_dict_finds_the_key_that_a_builtin_one_finds(
    kept: Callable[[list[Any]], Any], key: Any
) -> None:
    table, builtin = kept(STORED), dict(zip(STORED, map(repr, STORED), strict=True))
    assert table.get(key, "none") == builtin.get(key, "none")
    assert (key in table) is (key in builtin)
    assert [*table.keys() & [key]] == [*builtin.keys() & [key]]
    if key in builtin:
        assert table[key] == builtin[key]
    else:
        with pytest.raises(KeyError):
            table[key]


def found(key: Any, kept: Any) -> object:
    # A list compares a number of numpy with tuples, too, which raises.
    try:
        return key in kept
    except (ValueError, OverflowError) as error:
        return str(error)


@pytest.mark.parametrize("kept", [frozen_set, shared_set, frozen_list, shared_list])
@pytest.mark.parametrize("key", KEYS, ids=kind)
def test_a_set_or_list_finds_what_a_builtin_one_finds(
    kept: Callable[[list[Any]], Any], key: Any
) -> None:
    builtin = STORED if kept in (frozen_list, shared_list) else set(STORED)
    assert found(key, kept(STORED)) == found(key, builtin)


def test_the_keys_are_in_both_lists_as_python_finds_them() -> None:
    known = set(STORED)
    assert [key for key in FOUND if key not in known] == []
    assert [key for key in MISSED if key in known] == []


@pytest.mark.parametrize(
    "key", [Place("sw1", 22), numpy.int64(7), share.freeze(("sw1", 22))], ids=kind
)
def test_a_key_is_taken_out_of_a_shared_dict_or_set_by_one_that_equals_it(key: Any) -> None:
    table, members = shared_dict(STORED), shared_set(STORED)
    members.remove(key)
    assert key not in members
    assert len(members) == len(STORED) - 1
    assert table.pop(key) is not None
    assert table.pop(key, "gone") == "gone"
    table = shared_dict(STORED)
    del table[key]
    assert len(table) == len(STORED) - 1
    with pytest.raises(KeyError):
        del table[key]
    assert table.pop(object(), "none") == "none"


def test_what_has_no_hash_is_no_key_but_a_set_is_looked_for_as_a_frozenset() -> None:
    for table in frozen_dict(STORED), shared_dict(STORED), frozen_set(STORED), shared_set(STORED):
        keys: list[Any] = [[], {}, ([],), (numpy.int64(1), []), numpy.zeros(1), share.freeze([1])]
        for key in keys:
            with pytest.raises(TypeError, match="unhashable type"):
                _ = key in table
    assert {1, "a"} in frozen_set(STORED)
    assert {1, "b"} not in frozen_set(STORED)


@pytest.mark.parametrize("kept", [frozen_dict, shared_dict, frozen_set, shared_set])
def test_a_frozen_tuple_is_kept_as_the_key_that_it_equals(
    kept: Callable[[list[Any]], Any],
) -> None:
    frozen = share.freeze(("sw1", (22, frozenset({1}))))
    large = share.freeze(tuple(range(300)))
    table = kept([frozen, ("in", large), share.freeze([frozenset({5})])[0]])
    for key in ("sw1", (22, frozenset({1}))), ("in", tuple(range(300))), frozenset({5}):
        assert key in table
    assert frozen in table
    assert {type(key) for key in table} <= {tuple, frozenset}


def test_a_frozen_tuple_is_found_in_a_shared_list_by_what_is_in_it() -> None:
    shared = shared_list([("sw1", 22), [1, 2]])
    assert shared.index(share.freeze(("sw1", 22))) == 0
    shared.remove(share.freeze(("sw1", 22)))
    assert len(shared) == 1


def test_a_class_that_raises_in_its_comparison_is_heard() -> None:
    class Bad(str):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = str.__hash__

    for table in frozen_dict(STORED), shared_dict(STORED), frozen_set(STORED), shared_set(STORED):
        with pytest.raises(ZeroDivisionError):
            _ = Bad("name") in table


def test_a_row_is_read_by_names_that_are_no_plain_strings() -> None:
    rows: Any = share.freeze([{"id": number, "name": str(number)} for number in range(10)])
    assert rows[3][numpy.str_("id")] == rows[3][Loud("ID")] == rows[3][Twin("id")] == 3
    assert rows[3].get(Loud("other")) is None


def test_a_range_of_frozen_keys_begins_at_a_number_of_numpy() -> None:
    table = share.freeze(dict.fromkeys(range(1_000)))
    assert [*table.irange(numpy.int64(3), numpy.float64(4.5))] == [3, 4]
