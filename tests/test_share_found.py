"""What is found in shared lists and deques: whatever Python finds in its own."""

import enum
from collections import deque
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share


class Pair(NamedTuple):
    left: object
    right: object


class Name(str):
    pass


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.StrEnum):
    RED = "red"


class Loud(enum.Enum):
    """Its members equal their values in letters of any size."""

    RED = "RED"

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other.upper() == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


class LoudText(str, enum.Enum):  # noqa: UP042
    """As above, of strings."""

    RED = "RED"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.upper() == self.value

    def __hash__(self) -> int:
        return hash(self.value)


class Place(tuple[int, int], enum.Enum):
    HERE = (1, 2)


class Plain(enum.Enum):
    ONE = 1


class Mask(enum.IntFlag):
    A = 1
    B = 2


@share.struct
class Account:
    """An account that equals its number."""

    number: int

    def __eq__(self, other: object) -> bool:
        return self.number == (other.number if isinstance(other, Account) else other)

    __hash__ = None  # pyright: ignore


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # pyright: ignore


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
# Each of them anew, because Python finds the very object without comparing it.
STORED: list[Callable[[], Any]] = [
    *(
        lambda: None,
        lambda: True,
        lambda: 1,
        lambda: 1.0,
        lambda: 0.5,
        lambda: 2**70,
        lambda: 1 + 0j,
    ),
    *(
        lambda: "red",
        lambda: "RED",
        lambda: b"raw",
        lambda: (1, 2),
        lambda: (1, (1, 2)),
        lambda: (),
    ),
    *(lambda: share.freeze((1, 2)), lambda: (1, share.freeze((1, 2))), lambda: share.freeze(())),
    *(lambda: share.freeze([1, 2]), lambda: share.freeze({"a": 1}), lambda: share.freeze({1, 2})),
    *(lambda: [1, 2], lambda: {"a": 1}, lambda: {1, 2}, lambda: frozenset({1, 2})),
    *(lambda: deque([1, 2]), lambda: ([1, 2], 1), lambda: range(3)),
    *(lambda: Decimal(1), lambda: Decimal("0.5"), lambda: Fraction(1, 2), lambda: Fraction(1, 3)),
    *(lambda: Level.LOW, lambda: Colour.RED, lambda: Loud.RED, lambda: LoudText.RED),
    *(lambda: Place.HERE, lambda: Plain.ONE, lambda: Mask.A, lambda: Mask.A | Mask.B),
    *(lambda: NOON, lambda: NOON.date(), lambda: NOON.time(), lambda: timedelta(1)),
    *(lambda: UUID(int=5), lambda: Account(1), lambda: (1, Account(2)), lambda: share.Pickled(1)),
]
SOUGHT: list[Callable[[], Any]] = [
    *STORED,
    *(lambda: 3, lambda: "Red", lambda: b"RED", lambda: (2, 1), lambda: [1], lambda: object()),
    *(lambda: numpy.int64(1), lambda: numpy.float32(0.5), lambda: numpy.bool_(True)),
    *(lambda: numpy.longdouble(1), lambda: numpy.str_("red"), lambda: numpy.bytes_(b"raw")),
    *(
        lambda: Name("red"),
        lambda: Pair(1, 2),
        lambda: (numpy.int64(1), 2),
        lambda: (1, Pair(1, 2)),
    ),
    *(lambda: NOON.astimezone(timezone(timedelta(hours=2))), lambda: date(2024, 5, 1)),
    *(lambda: Anything(), lambda: (1, Anything()), lambda: memoryview(b"raw"), lambda: range(0, 3)),
    *(lambda: bytearray(b"raw"), lambda: True, lambda: Account(2)),
]


def found(items: Any, sought: Any) -> list[object]:
    """Return what every method that looks for something finds; the last takes it out."""
    said: list[object] = []
    for look in (
        lambda: sought in items,
        lambda: items.count(sought),
        lambda: items.index(sought),
        lambda: items.index(sought, 1),
        lambda: items.remove(sought),
    ):
        try:
            said.append(look())
        except (OverflowError, TypeError, ValueError) as error:
            # Numpy's numbers do not compare themselves with everything.
            said.append(type(error).__name__)
    return [*said, len(items)]


@pytest.fixture(scope="module")
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 28)


def differing(heap: share.Heap, stored: list[Callable[[], Any]], sought: Any) -> list[object]:
    """Return the containers that find something else than Python's."""
    makers: list[Callable[[list[Any]], Any]] = [list, deque]
    wrong: list[object] = []
    for make in makers:
        wanted = found(make([made() for made in stored]), sought)
        seen = found(heap.share(make([made() for made in stored])), sought)
        if seen != wanted:
            wrong.append((make.__name__, seen, wanted))
    return wrong


@pytest.mark.parametrize("sought", range(len(SOUGHT)))
def test_one_item_is_found_by_all_that_equals_it(heap: share.Heap, sought: int) -> None:
    wrong: list[object] = []
    for made in STORED:
        differences = differing(heap, [made], SOUGHT[sought]())
        if differences:
            wrong.append((made(), SOUGHT[sought](), differences))
    assert not wrong


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(STORED), max_size=6), st.sampled_from(SOUGHT))
def test_the_first_of_several_is_found_and_all_are_counted(
    stored: list[Callable[[], Any]], sought: Callable[[], Any]
) -> None:
    assert not differing(share.Heap(max_size=1 << 24), stored, sought())


def test_bytes_find_a_buffer_of_the_same(heap: share.Heap) -> None:
    items = heap.share([share.buffer(b"raw"), (1, share.buffer(b"row")), b"raw"])
    assert found(items, b"raw") == [True, 2, 0, 2, None, 2]
    assert found(items, (1, b"row")) == [True, 1, 0, "ValueError", None, 1]
