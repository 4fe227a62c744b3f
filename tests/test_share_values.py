"""Immutable values beyond numbers and strings, and what is pickled by name."""

import datetime
import enum
import os
import pickle
import sys
import types
from collections.abc import Iterator
from datetime import date, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
EAST = timezone(timedelta(hours=5, minutes=30))


class Color(enum.Enum):
    RED = 1
    CRIMSON = 1
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Name(enum.StrEnum):
    FIRST = "first"


class Modes(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


@pytest.fixture(scope="module")
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


@pytest.fixture(autouse=True)
def empty(heap: share.Heap) -> Iterator[None]:
    yield
    heap.root.clear()


VALUES: list[object] = [
    *(date(1, 1, 1), date(2024, 2, 29), date.max),
    *(time(), time(23, 59, 59, 999_999), time(1, 2, fold=1), time(1, tzinfo=EAST)),
    *(time(1, tzinfo=datetime.UTC), time(1, 2, 3, tzinfo=BERLIN)),
    *(datetime.datetime.min, datetime.datetime.max, datetime.datetime(2024, 1, 2, 3, fold=1)),
    datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
    datetime.datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(seconds=-1), "odd")),
    *(timedelta(), timedelta.min, timedelta.max, timedelta(days=-1, microseconds=1)),
    *(datetime.UTC, EAST, timezone(timedelta(hours=1), "named"), BERLIN),
    *map(
        Decimal, ("0", "-0", "1.10", "0.1", "1E+3", "1E-9999", "-Infinity", "1E+999999", "3" * 60)
    ),
    *(Fraction(1, 3), Fraction(-4), Fraction(10**40, 7)),
    *(UUID(int=0), UUID(int=0x1234567890ABCDEF1234567890ABCDEF)),
    *(range(0), range(10), range(5, -5, -2), range(10**30)),
    *(Color.RED, Color.GREEN, Level.HIGH, Name.FIRST, Modes.READ | Modes.WRITE, Modes(0)),
    *(Bits.ONE | Bits.TWO, Bits(8)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_went_in(heap: share.Heap, value: object) -> None:
    root: share.dict[Any, Any] = heap.root
    nested = (1, (value, frozenset({value})))
    heap.root["value"] = value
    root[value] = nested
    heap.root["list"] = [{"deep": value}]
    found = heap.root["value"]
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    assert root[value] == nested
    assert value in heap.root
    items: share.list[Any] = heap.root["list"]
    assert isinstance(items, share.list)
    assert repr(items[0]) == f"share.dict({{'deep': {value!r}}})"


def test_what_is_more_than_equal_is_kept(heap: share.Heap) -> None:
    root = heap.root
    root["first"] = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)
    found = root["first"]
    assert isinstance(found, datetime.datetime)
    assert (found.fold, found.tzinfo) == (1, BERLIN)
    assert found.tzinfo is BERLIN
    root["utc"] = datetime.UTC
    assert root["utc"] is datetime.UTC
    root["name"] = timezone(timedelta(hours=1), "named")
    assert str(root["name"]) == "named"
    for value in (Color.RED, Level.LOW, Name.FIRST, Modes.READ | Modes.WRITE, Bits(8)):
        root["member"] = value
        assert root["member"] is value
    assert root["member"] is not Color.CRIMSON
    not_a_number = Decimal("sNaN123")
    root["nan"] = not_a_number
    assert str(root["nan"]) == "sNaN123"


NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.floats(-3, 3, width=16),
    st.booleans(),
    st.decimals(-3, 3, allow_nan=False, places=1),
    st.fractions(-3, 3, max_denominator=4),
    st.sampled_from([*Level, *Bits]),
    st.sampled_from([Decimal("1E+2"), 100, Decimal("Infinity"), float("inf"), -0.0, 10**25]),
    st.sampled_from([Decimal("10E+24"), Decimal("1E+5001"), Decimal("10E+5000"), 0.1]),
)
ZONES = st.sampled_from([None, datetime.UTC, EAST, BERLIN, NEW_YORK])
MOMENTS = st.builds(
    datetime.datetime.replace,
    st.sampled_from(
        # Hours that come twice in one of the zones, and their neighbours.
        [
            datetime.datetime(2024, *day, hour, 30)
            for day in ((10, 27), (11, 3))
            for hour in range(8)
        ]
    ),
    tzinfo=ZONES,
    fold=st.integers(0, 1),
)
TIMES = st.builds(
    time, st.integers(0, 23), st.sampled_from([0, 30]), tzinfo=ZONES, fold=st.integers(0, 1)
)
KEYS = st.one_of(
    NUMBERS,
    MOMENTS,
    TIMES,
    st.dates(date(2024, 1, 1), date(2024, 1, 3)),
    st.sampled_from([*Color, *Name, "first", Modes.READ, Modes(0), 0, EAST, datetime.UTC]),
    st.builds(range, st.integers(0, 3), st.integers(0, 5), st.integers(1, 3)),
    st.builds(timedelta, hours=st.integers(-1, 1)),
    st.sampled_from([share.Pickled(1), share.Pickled([1])]),
)


@settings(max_examples=600, deadline=None)
@given(one=KEYS, other=KEYS)
def test_keys_that_are_equal_are_the_same_key(heap: share.Heap, one: object, other: object) -> None:
    root: share.dict[Any, Any] = heap.root
    root.clear()
    wrapped: list[tuple[object, object]] = [
        (one, other),
        ((0, one), (0, other)),
        (frozenset({one}), frozenset({other})),
    ]
    for stored, sought in wrapped:
        root[stored] = True
        assert (sought in root) == (one == other)
    root.clear()


def test_a_fraction_and_a_decimal_that_no_float_equals_are_the_same_key(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    root[Decimal("0.1")] = "tenth"
    assert root[Fraction(1, 10)] == "tenth"
    assert 0.1 not in heap.root
    root[Decimal("NaN")] = "nothing"
    assert Decimal("NaN") not in heap.root


def test_other_time_zones_are_refused_with_their_place(heap: share.Heap) -> None:
    class Local(datetime.tzinfo):
        pass

    moment = datetime.datetime(2024, 1, 1, tzinfo=Local())
    message = r"^\['at'\]\[1\] cannot be shared: its tzinfo is of type .*Local, neither"
    with pytest.raises(TypeError, match=message):
        heap.root["x"] = {"at": (0, moment)}
    with pytest.raises(TypeError, match=r"^the object cannot be shared: its tzinfo"):
        heap.root["x"] = time(tzinfo=Local())


class Pair(NamedTuple):
    one: int
    two: int


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [Pair(1, 2), Text("a"), type("Money", (Decimal,), {})(1)])
def test_what_a_subclass_adds_would_be_lost_so_it_is_refused(
    heap: share.Heap, value: object
) -> None:
    with pytest.raises(
        TypeError, match=f"^the object cannot be shared: it is of type {type(value).__name__}; "
    ):
        heap.root["x"] = value


def test_an_enum_that_others_cannot_find_is_refused(heap: share.Heap) -> None:
    class Local(enum.Enum):
        HERE = 1

    with pytest.raises(TypeError, match=r"enum that other processes cannot import as .*Local"):
        heap.root["x"] = Local.HERE


def test_a_member_of_a_class_that_was_declared_anew_is_one_of_the_new_class(
    heap: share.Heap, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = types.ModuleType("declared_twice")
    monkeypatch.setitem(sys.modules, "declared_twice", module)

    def declare() -> Any:
        return enum.Enum("Colour", ["RED", "GREEN"], module="declared_twice", qualname="Colour")

    module.Colour = declare()
    heap.root["colour"] = module.Colour.RED
    for _ in range(3):
        assert heap.root["colour"] is module.Colour.RED
    old, module.Colour = module.Colour, declare()
    for _ in range(3):
        assert heap.root["colour"] is module.Colour.RED
        assert heap.root["colour"] is not old.RED
    del module.Colour
    with pytest.raises(ImportError, match="import declared_twice to read it"):
        heap.root["colour"]
    monkeypatch.delitem(sys.modules, "declared_twice")
    with pytest.raises(ImportError, match="import declared_twice to read it"):
        heap.root["colour"]


def test_more_values_than_are_remembered_are_read_as_they_were_put_in(heap: share.Heap) -> None:
    days = [date.fromordinal(700_000 + number) for number in range(5_000)]
    heap.root["days"] = days
    for _ in range(2):
        assert heap.root["days"][:] == days
        assert [heap.root["days"][number] for number in range(0, 5_000, 7)] == days[::7]


def test_a_member_is_read_where_its_module_was_imported_and_nowhere_else(heap: share.Heap) -> None:
    module = types.ModuleType("shop_models")
    exec(
        "import enum\nclass Shop:\n class State(enum.Enum):\n  OPEN = 1\n  CLOSED = 2",
        module.__dict__,
    )
    sys.modules["shop_models"] = module
    try:
        member = module.Shop.State.OPEN
        heap.root["state"] = member
        heap.root["other"] = module.Shop.State.CLOSED
        assert heap.root["state"] is member
        # Another release of the program, with one member less.
        module.Shop.State = enum.Enum("State", "OPEN", module="shop_models")
        assert heap.root["state"] is module.Shop.State.OPEN
        with pytest.raises(
            ImportError, match=r"^shop_models\.Shop\.State has no member CLOSED here$"
        ):
            heap.root["other"]
    finally:
        del sys.modules["shop_models"]
    with pytest.raises(ImportError, match=r"import shop_models to read it$") as caught:
        heap.root["state"]
    assert caught.value.name == "shop_models"
    assert "shop_models" not in sys.modules


class Loud:
    """Says so when it is unpickled."""

    loaded = 0

    def __init__(self) -> None:
        self.items = [1, 2]

    def __setstate__(self, state: dict[str, object]) -> None:
        Loud.loaded += 1
        self.__dict__.update(state)


def test_only_what_is_asked_for_by_name_is_pickled_and_unpickled(heap: share.Heap) -> None:
    root: share.dict[Any, Any] = heap.root
    with pytest.raises(TypeError, match="it is of type Loud; "):
        heap.root["x"] = Loud()
    heap.root["x"] = share.Pickled(Loud())
    found = heap.root["x"]
    assert isinstance(found, share.Pickled)
    assert Loud.loaded == 0
    loaded = found.load()
    assert isinstance(loaded, Loud)
    assert (Loud.loaded, loaded.items) == (1, [1, 2])
    assert found.load() is not loaded
    assert found == pickle.loads(pickle.dumps(found)) == share.Pickled.from_bytes(found.data)
    assert repr(found) == f"<share.Pickled of {len(found.data)} bytes>"
    root[found] = "key"
    assert root[found] == "key"


def test_another_process_reads_what_this_one_wrote(heap: share.Heap) -> None:
    heap.root["all"] = [Level.HIGH, date(2024, 1, 1), Decimal("1.50"), share.Pickled({"a": 1})]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            found: share.list[Any] = heap.root["all"]
            assert isinstance(found, share.list)
            assert found[0] is Level.HIGH
            pickled = found[3]
            assert isinstance(pickled, share.Pickled)
            assert (found[1], str(found[2])) == (date(2024, 1, 1), "1.50")
            assert pickled.load() == {"a": 1}
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
