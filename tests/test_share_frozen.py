"""Frozen structures: they read like the builtins they were made of, and nothing changes them."""

from __future__ import annotations

import bisect
import collections
import copy
import json
import pickle
import sysconfig
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share


class Colour(Enum):
    """An enum that other processes find."""

    RED = 1


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, 10**40, -(10**30)),
    *(0.0, -0.0, 1.5, float("inf"), 1 + 2j),
    *("", "short", "é", "a text that does not fit in a cell", "\ud800", "€" * 20, "\0"),
    *(b"", b"short", b"\xff" * 40),
    *(datetime(2026, 11, 25, tzinfo=UTC), date(2026, 1, 2), timedelta(1), Decimal("1.50")),
    *(Fraction(1, 3), UUID(int=5), range(2, 9, 3), Colour.RED, share.Pickled([1])),
    *((), (1, "a"), (1, (2, (3,))), frozenset({1, 2})),
]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
)
keys = st.text(max_size=20) | st.integers() | st.booleans() | st.tuples(st.integers(), st.text())
structures = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(keys, inner, max_size=8)
        | st.lists(st.fixed_dictionaries({"id": inner, "name": st.text(max_size=20)}), max_size=5)
        | st.sets(keys, max_size=8)
        | st.tuples(inner, inner)
    ),
    max_leaves=25,
)


def raised(call: Callable[..., object], *arguments: object) -> str:
    """The type of an exception and what it says."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*arguments)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_value_is_read_as_it_was(value: object) -> None:
    row = share.freeze([value, {"key": value}, (value,)])
    assert row[0] == value
    assert row[2] == (value,)
    assert row.thaw() == [value, {"key": value}, (value,)]
    if not isinstance(value, frozenset):
        assert [type(row[0]), repr(row[0])] == [type(value), repr(value)]


@pytest.mark.parametrize("key", [value for value in VALUES if value != ""], ids=repr)
def test_every_value_is_found_as_a_key_and_as_a_member(key: object) -> None:
    table = share.freeze({"": 0, key: "found", "more": 1})
    assert table[key] == "found"
    assert key in table
    assert list(table)[1] == key
    assert key in share.freeze({"", key})


@settings(max_examples=150, deadline=None)
@given(structures)
def test_a_frozen_structure_equals_what_it_was_made_of(structure: object) -> None:
    frozen = share.freeze([structure])
    assert frozen == [structure]
    assert [structure] == frozen
    thawed = frozen.thaw()
    assert thawed == [structure]
    assert repr(thawed) == repr([structure]) or "{" in repr(thawed)
    assert pickle.loads(pickle.dumps(frozen)) == [structure]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(keys, scalars, max_size=300), st.lists(keys, max_size=20))
def test_a_frozen_dict_answers_as_a_dict_does(plain: dict[Any, Any], asked: list[Any]) -> None:
    frozen = share.freeze(plain)
    assert len(frozen) == len(plain)
    assert [*frozen] == [*plain]
    assert [*reversed(frozen)] == [*reversed(plain)]
    assert [*frozen.values()] == [*plain.values()]
    assert [*frozen.items()] == [*plain.items()]
    assert [*reversed(cast(Any, frozen.items()))] == [*reversed(plain.items())]
    for key in [*plain, *asked]:
        assert (key in frozen) == (key in plain)
        assert frozen.get(key, "nothing") == plain.get(key, "nothing")
        if key not in plain:
            with pytest.raises(KeyError):
                frozen[key]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12), st.slices(12), st.slices(12), st.integers(-15, 15))
def test_a_frozen_list_answers_as_a_list_does(
    plain: list[int], one: slice, other: slice, index: int
) -> None:
    frozen = share.freeze(plain)
    assert frozen[one] == plain[one]
    assert frozen[one][other] == plain[one][other]
    assert [*frozen[one]] == [*plain[one]]
    assert [*reversed(frozen[one])] == [*reversed(plain[one])]
    assert pickle.loads(pickle.dumps(frozen[one])) == plain[one]
    assert frozen.count(3) == plain.count(3)
    assert (3 in frozen[one]) == (3 in plain[one])
    if -len(plain) <= index < len(plain):
        assert frozen[index] == plain[index]
        assert frozen.index(plain[index]) == plain.index(plain[index])
    else:
        assert raised(frozen.__getitem__, index) == "IndexError: list index out of range"
    assert (frozen < [2, 2]) == (plain < [2, 2])


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.sets(st.text(max_size=3), max_size=200),
        st.sets(st.integers(-50, 500) | st.floats(-50, 500), max_size=200),
    ),
    st.tuples(st.booleans(), st.booleans()),
    st.booleans(),
    st.data(),
)
def test_ranges_of_keys_are_those_of_a_sorted_dict(
    members: set[Any], inclusive: tuple[bool, bool], reverse: bool, data: st.DataObject
) -> None:
    borders = st.sampled_from([None, *members])
    low, high = data.draw(borders), data.draw(borders)
    expected = [
        member
        for member in sorted(members, reverse=reverse)
        if (low is None or (low <= member if inclusive[0] else low < member))
        and (high is None or (member <= high if inclusive[1] else member < high))
    ]
    for frozen in (share.freeze(dict.fromkeys(members)), share.freeze(members)):
        assert [*frozen.irange(low, high, inclusive, reverse)] == expected
    in_order = share.freeze(dict.fromkeys(sorted(members)))
    assert [*in_order.irange(low, high, inclusive, reverse)] == expected


def test_ranges_need_keys_that_stand_in_an_order() -> None:
    mixed = share.freeze({number if number % 2 else str(number): 0 for number in range(100)})
    assert raised(mixed.irange).startswith("TypeError: these keys have no common order")
    texts = share.freeze({str(number): 0 for number in range(100)})
    assert raised(texts.irange, 5) == "TypeError: 5 cannot be compared with these keys"


class Name(str):
    """As numpy's strings, a string of Python."""


class Number:
    """As numpy's integers, what equals an integer."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return other == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def test_keys_are_found_by_what_equals_them() -> None:
    table: Any = share.freeze({"a": 1, 5: 2})
    row: Any = share.freeze([{"a": 1}, {"a": 2}, {"a": 3}])[2]
    assert [table[Name("a")], table[Number(5)], row[Name("a")]] == [1, 2, 3]
    assert Name("b") not in table
    assert Number(6) not in table
    assert raised(table.__getitem__, [1]) == "TypeError: unhashable type: 'list'"


def test_a_list_in_order_is_searched_by_bisection() -> None:
    numbers = share.freeze([*range(0, 1_000, 10)])
    assert bisect.bisect_left(numbers, 500) == 50
    assert bisect.bisect_left(numbers[10:20], 105) == 1


def test_sets_answer_as_sets_do() -> None:
    plain = {1, "two", (3, "x"), frozenset({4})}
    frozen = share.freeze(plain)
    other = {"two", 5}
    assert frozen == plain
    assert plain == frozen
    assert {*frozen} == plain
    assert frozen & other == plain & other
    assert other & frozen == other & plain
    assert frozen | other == plain | other
    assert other - frozen == other - plain
    assert frozen ^ other == plain ^ other
    assert frozen >= {1}
    assert frozen.isdisjoint({9})
    assert frozen.union([9]) == plain | {9}
    assert raised(hash, frozen) == "TypeError: unhashable type: 'FrozenSet'"
    fixed: Any = share.freeze([frozenset({1, 2})])[0]
    assert hash(fixed) == hash(frozenset({1, 2}))
    assert type(fixed.thaw()) is frozenset


def test_they_are_what_the_abstract_classes_describe() -> None:
    frozen: Any = share.freeze({"a": [1], "b": {2}, "c": tuple(range(300))})
    kinds = (Mapping, Sequence, Set, Sequence)
    for thing, kind in zip([frozen, *frozen.values()], kinds, strict=True):
        assert isinstance(thing, kind)
    match frozen:
        case {"a": [1]}:
            pass
        case _:
            raise AssertionError("no match")
    assert frozen.keys() & {"a", "z"} == {"a"}
    assert ("a", [1]) in frozen.items()
    assert {**frozen} == frozen
    assert collections.ChainMap({}, frozen)["a"] == [1]
    assert frozen | {"d": 4} == {**frozen, "d": 4}
    assert {"d": 4} | frozen == {"d": 4, **frozen}
    assert frozen["a"] + [2] == [1, 2]
    assert [2] + frozen["a"] == [2, 1]
    assert json.loads(json.dumps(share.freeze({"x": [{"y": 1}]}), default=copy.copy)) == {
        "x": [{"y": 1}]
    }


def test_large_tuples_are_views_and_small_ones_are_tuples() -> None:
    large = tuple(range(300))
    frozen = share.freeze({"small": (1, [2]), "large": large})
    assert type(frozen["small"]) is tuple
    assert isinstance(frozen["small"][1], share.FrozenList)
    assert isinstance(frozen["large"], share.FrozenTuple)
    assert frozen["large"] == large
    assert frozen["large"] != [*large]
    assert hash(frozen["large"]) == hash(large)
    assert share.freeze((1, 2)) == (1, 2)


def test_copies_are_ordinary_objects() -> None:
    plain = {"rows": [{"id": 1}, {"id": 2}], "set": {1}}
    frozen = share.freeze(plain)
    copies: list[Any] = [frozen.thaw(), copy.deepcopy(frozen)]
    for deep in copies:
        assert deep == plain
        assert [type(deep), type(deep["rows"]), type(deep["rows"][1])] == [dict, list, dict]
    shallow: Any = copy.copy(frozen)
    assert type(shallow) is dict
    assert isinstance(shallow["rows"], share.FrozenList)


@pytest.mark.parametrize("name", ["update", "pop", "setdefault", "clear", "popitem"])
def test_a_frozen_dict_refuses_to_change(name: str) -> None:
    said = raised(getattr(share.freeze({"a": 1}), name))
    assert said == (
        f"TypeError: a FrozenDict never changes, so it has no {name}(): change an ordinary copy, "
        "from its thaw(), and freeze that"
    )


def test_nothing_that_is_written_with_brackets_changes_it() -> None:
    frozen: Any = share.freeze({"list": [1], "set": {1}})
    never = "never changes: change an ordinary copy, from its thaw(), and freeze that"
    assert raised(frozen.__setitem__, "a", 1) == f"TypeError: a FrozenDict {never}"
    assert raised(frozen.__delitem__, "list") == f"TypeError: a FrozenDict {never}"
    assert raised(frozen["list"].__setitem__, 0, 1) == f"TypeError: a FrozenList {never}"
    assert raised(frozen["list"].append, 1).startswith("TypeError: a FrozenList never changes, so ")
    assert raised(frozen["set"].add, 1).startswith("TypeError: a FrozenSet never changes, so ")
    with pytest.raises(TypeError, match="never changes"):
        frozen["list"] += [1]


def test_what_cannot_be_frozen_is_named_by_its_place() -> None:
    said = raised(share.freeze, {"x": [1, {"y": object()}]})
    assert said == (
        "TypeError: ['x'][1]['y'] cannot be frozen: it is of type object; freeze its parts in a "
        "dict or a list instead, or wrap it in share.Pickled"
    )
    loop: list[object] = []
    loop.append({"again": loop})
    said = raised(share.freeze, loop)
    assert said == (
        "TypeError: [0]['again'] cannot be frozen: it contains itself, and a frozen structure "
        "cannot"
    )
    assert raised(share.freeze, 5).startswith(
        "TypeError: freeze() takes a dict, a list, a tuple or a set"
    )
    deep: list[object] = []
    for _ in range(1_000_000):
        deep = [deep]
    assert raised(share.freeze, deep).startswith("RecursionError: ")


def test_a_dict_that_changes_meanwhile_is_an_error_and_not_a_crash() -> None:
    table: dict[Any, Any] = {number: [number.to_bytes(2_000, "little")] for number in range(4_000)}
    began = dict(table)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        # Other threads may change it at any time there, so it is frozen as it was at one moment.
        assert share.freeze(table, progress=lambda _: table.popitem()) == began
        return
    said = raised(lambda: share.freeze(table, progress=lambda _: table.popitem()))
    assert said == "RuntimeError: dictionary changed size during iteration"


def test_what_occurs_twice_is_written_once() -> None:
    inner = [*range(1_000)]
    one, two = share.freeze([inner]), share.freeze([inner, inner])
    assert two[0] == two[1] == inner
    # pickled: where the second one is.
    assert two[0].__reduce__()[1][3:] == two[1].__reduce__()[1][3:]
    assert one == [inner]


def test_what_is_shared_or_frozen_can_be_frozen() -> None:
    heap = share.Heap(max_size=1 << 22)
    heap.root["table"] = {"rows": [{"id": 1}], "set": {1}}
    table: object = heap.root["table"]
    frozen: Any = share.freeze(table)
    assert frozen == {"rows": [{"id": 1}], "set": {1}}
    assert share.freeze({"again": frozen}) == {"again": frozen}


def test_representations_are_short() -> None:
    assert repr(share.freeze([1, "a", [2], {3: 4}])) == "FrozenList([1, 'a', [...], {...}])"
    table = share.freeze(dict.fromkeys(range(1000), "x" * 500))
    assert repr(table).startswith("FrozenDict({0: 'xxxx")
    assert repr(table).endswith("... 1000 in all})")
    assert len(repr(table)) < 400
