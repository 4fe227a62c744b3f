"""Shared objects beside other libraries, and what a refusal says."""

from __future__ import annotations

import bisect
import copy
import dataclasses
import json
import pprint
import random
from collections import Counter, OrderedDict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 22)


class Pair(NamedTuple):
    one: int
    two: int


@dataclasses.dataclass
class Point:
    x: int


class Interface:
    """As numpy's arrays say what they are."""

    __array_interface__ = None


class Series:
    """As pandas says that it becomes an array."""

    def __array__(self) -> Any:
        return numpy.zeros(1)


class Frame(Series):
    """As pandas and polars say that there are columns."""

    def __dataframe__(self) -> None:
        """Return the columns."""


class Text(str):
    pass


class Stamp(datetime):
    pass


class NaTType(datetime):
    """As pandas' own."""


LONG, LONGER = numpy.longdouble.__name__, numpy.clongdouble.__name__
OF_TIME = "it is a numpy scalar, of type "


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (Point(1), "it is of type Point; declare the class with @share.struct instead of @datacl"),
        (Path("x"), "it is of type PosixPath; share str() of it, or wrap it in share.Pickled"),
        (Interface(), "it is of type Interface; copy it into the heap with share.array(...)"),
        (Series(), "it is of type Series; copy it into the heap with share.array(...)"),
        (Pair(1, 2), "it is of type Pair; share tuple() of it, or wrap it in share.Pickled"),
        (object(), "it is of type object; declare its class with @share.struct if it is yours, s"),
        (Counter("a"), "it is of type Counter; share dict() of it, or wrap it in share.Pickled"),
        (
            OrderedDict[str, int](),
            "it is of type OrderedDict; share dict() of it, or wrap it in share.Pic",
        ),
        (Text("x"), "it is of type Text; share str() of it, or wrap it in share.Pickled"),
        (Stamp(2024, 1, 1), "it is of type Stamp; share a plain datetime, or wrap it in share.Pi"),
        (NaTType(2024, 1, 1), "it is of type NaTType; share None in its place"),
        (Frame(), "it is of type Frame; share a dict of its columns, each as a list or as share."),
        (numpy.int64(7), "it is a numpy scalar, of type int64; use its item() instead"),
        (numpy.float64(7), "it is a numpy scalar, of type float64; use its item() instead"),
        (numpy.bool_(1), f"it is a numpy scalar, of type {numpy.bool_.__name__}; use its item()"),
        (numpy.str_("x"), "it is a numpy scalar, of type str_; use its item() instead"),
        (numpy.longdouble(1), f"it is a numpy scalar, of type {LONG}; use float() of it instead"),
        (numpy.clongdouble(1), f"it is a numpy scalar, of type {LONGER}; use complex() of it inst"),
        (numpy.datetime64("2024-05-01", "ns"), f"{OF_TIME}datetime64; use its astype('M8[us]').it"),
        (numpy.timedelta64(1, "ns"), f"{OF_TIME}timedelta64; use its astype('m8[us]').item() inst"),
    ],
)
def test_a_refusal_names_the_place_and_the_remedy(
    heap: share.Heap, given: object, remedy: str
) -> None:
    with pytest.raises(TypeError) as refusal:
        heap.root["x"] = {"a": [given]}
    assert str(refusal.value).startswith(f"['a'][0] cannot be shared: {remedy}")
    with pytest.raises(TypeError) as refusal:
        heap.root["x"] = given
    assert str(refusal.value).startswith(f"the object cannot be shared: {remedy}")


def test_what_a_refusal_of_a_numpy_scalar_says_is_right(heap: share.Heap) -> None:
    for scalar in numpy.int64(7), numpy.float64(0.5), numpy.bool_(True), numpy.str_("x"):
        heap.root["x"] = scalar.item()
        assert heap.root["x"] == scalar
        for given in {"x": [scalar]}, {scalar: 1}, {scalar}:
            with pytest.raises(TypeError, match=r"is a numpy scalar, of type .*use its item\(\)"):
                share.freeze(given)


def test_what_it_says_of_long_numbers_and_times_is_right(heap: share.Heap) -> None:
    day, hour = numpy.datetime64("2024-05-01", "ns"), numpy.timedelta64(3600, "s").astype("m8[ns]")
    heap.root["x"] = [
        *(float(numpy.longdouble(0.5)), complex(numpy.clongdouble(1j))),
        *(day.astype("M8[us]").item(), hour.astype("m8[us]").item()),
    ]
    assert heap.root["x"] == [0.5, 1j, datetime(2024, 5, 1), timedelta(hours=1)]


def test_an_object_of_another_heap_is_refused_with_what_to_do(heap: share.Heap) -> None:
    other = share.Heap(max_size=1 << 22)
    with pytest.raises(TypeError, match=r"^the object is in another heap: share a copy instead"):
        heap.root["x"] = other.share([1])
    with pytest.raises(TypeError, match=r"^\[0\] is in another heap: share a copy instead"):
        heap.root["x"] = [other.share([1])]


def test_the_classes_take_type_arguments_and_are_named_as_they_are_written(
    heap: share.Heap,
) -> None:
    for class_, args in ((share.dict, (str, int)), (share.list, (int,)), (share.set, (int,))):
        assert class_[args].__origin__ is class_  # type: ignore[index]
        assert class_.__module__ == "ungil.share"
    assert repr(share.deque) == "<class 'ungil.share.deque'>"
    with pytest.raises(TypeError, match=r"Object of type share\.dict is not JSON serializable"):
        json.dumps(heap.root)


def test_what_docs_say_of_other_libraries_is_true(heap: share.Heap) -> None:
    nested: dict[str, Any] = {"a": [1, {"b": [2]}], "c": {}}
    d = heap.share(nested)
    assert json.loads(json.dumps(d, default=copy.copy)) == nested
    assert copy.deepcopy(d) == nested
    assert type(copy.deepcopy(d)["a"]) is list
    assert pprint.pformat(d).startswith("share.dict({'a': share.list([1, share.dict(")
    items = heap.share([1, 3])
    bisect.insort(items, 2)
    assert items == [1, 2, 3]
    assert random.Random(0).choice(items) in (1, 2, 3)
    assert sorted(d) == ["a", "c"]


def test_numpy_is_told_that_a_dict_is_no_array(heap: share.Heap) -> None:
    with pytest.raises(TypeError, match=r"pass its copy\(\) to numpy or pandas"):
        numpy.asarray(heap.root)
    assert numpy.asarray(heap.share([1, 2])).tolist() == [1, 2]
