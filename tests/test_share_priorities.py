"""In which order a `share.PriorityQueue` gives its items."""

from __future__ import annotations

import enum
from datetime import UTC, date, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share


class Level(enum.IntEnum):
    """Members that Python orders."""

    HIGH = -1
    NORMAL = 3
    LOW = 7


class Colour(enum.Enum):
    """Members that nobody orders."""

    RED = 1


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans())))
@settings(max_examples=50, deadline=None)
def test_a_priority_queue_gives_numbers_in_their_order(numbers: list[float]) -> None:
    shared = share.Heap(max_size=1 << 24).share(share.PriorityQueue[float]())
    for number in numbers:
        shared.put(number)
    assert [shared.get() for _ in numbers] == sorted(numbers)


ORDERED: list[st.SearchStrategy[Any]] = [
    st.one_of(
        st.decimals(-1000, 1000, places=3), st.fractions(-9, 9, max_denominator=50), st.integers()
    ),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9))])),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(Level),
    st.tuples(st.sampled_from(Level), st.dates()),
]


@given(st.one_of(*map(st.lists, ORDERED)))
@settings(max_examples=200, deadline=None)
def test_a_priority_queue_gives_what_python_orders_in_its_order(priorities: list[Any]) -> None:
    shared = share.Heap(max_size=1 << 24).share(share.PriorityQueue[Any]())
    shared.put_many(priorities)
    assert [shared.get() for _ in priorities] == sorted(priorities)


def test_nothing_comes_out_of_a_priority_queue_after_none(heap: share.Heap) -> None:
    shared = heap.share(share.PriorityQueue[Any]())
    items = [None, (date(2030, 1, 1), "a"), "b", 1]
    shared.put_many(items)
    assert [shared.get() for _ in items] == [1, "b", (date(2030, 1, 1), "a"), None]


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"a": 1}, "dict"),
        ((range(3), 1), "range"),
        (((frozenset({1}), 1), 1), "frozenset"),
        ([1, 2], "list"),
        (Colour.RED, "Colour"),
    ],
)
def test_a_priority_without_an_order_is_refused_and_leaves_nothing_behind(
    heap: share.Heap, item: Any, name: str
) -> None:
    shared = heap.share(share.PriorityQueue[Any]())
    message = f"^a share.PriorityQueue cannot compare objects of type {name}: put in "
    with pytest.raises(TypeError, match=message):
        shared.put(item)
    with pytest.raises(TypeError, match=message):
        shared.put_many([1, item, 2])
    assert shared.empty()
    shared.put((1, item))
    assert shared.get() == (1, item)
    plain = heap.share(share.Queue[Any]())
    plain.put(item)
    assert plain.get() == item


def test_equal_priorities_come_in_the_order_in_which_they_were_put_in(heap: share.Heap) -> None:
    shared = heap.share(share.PriorityQueue[Any](4))
    for item in [(2, {"a": 1}), (1, {"b": 1}), (1, {"c": 1}), "text"]:
        shared.put(item)
    assert shared.full()
    assert [shared.get() for _ in range(4)] == [
        "text",
        (1, {"b": 1}),
        (1, {"c": 1}),
        (2, {"a": 1}),
    ]
