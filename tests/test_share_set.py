"""Shared sets, seen from Python."""

import copy
import os
import pickle
import signal
from collections import UserString, deque
from collections.abc import Iterator, MutableSet
from pathlib import PurePath
from typing import Any

import pytest
from forked import in_child

from ungil import share
from ungil.share import _set as share_set


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


@pytest.fixture
def abc(heap: share.Heap) -> share.set[Any]:
    return shared(heap, "a", "b", "c")


def shared(heap: share.Heap, *members: object) -> share.set[Any]:
    made: share.set[Any] = heap.share(set(members))
    assert isinstance(made, share.set)
    return made


def test_a_set_that_is_given_to_a_shared_object_becomes_shared(heap: share.Heap) -> None:
    heap.root["tags"] = {"a", 1, (2.5, None), frozenset({b"x"})}
    tags: share.set[Any] = heap.root["tags"]
    assert isinstance(tags, share.set)
    assert tags is heap.root["tags"]
    assert tags == {"a", 1, (2.5, None), frozenset({b"x"})}
    tags.add("b")
    heap.root["nested"] = [{"deep": tags}]
    assert heap.root["nested"][0]["deep"] is tags  # pyright: ignore
    assert isinstance(tags, MutableSet)


def test_members_come_and_go(abc: share.set[Any]) -> None:
    abc.add("d")
    abc.add("d")
    abc.discard("a")
    abc.discard("a")
    abc.remove("b")
    assert len(abc) == 2
    assert "c" in abc
    assert "b" not in abc
    assert {abc.pop(), abc.pop()} == {"c", "d"}
    with pytest.raises(KeyError, match="pop from an empty set"):
        abc.pop()
    with pytest.raises(KeyError) as caught:
        abc.remove(("missing", 1))
    assert caught.value.args == (("missing", 1),)
    abc.update("xyz")
    abc.clear()
    assert abc == set()


def test_operators_take_sets_on_either_side_and_make_builtin_ones(
    heap: share.Heap, abc: share.set[Any]
) -> None:
    others = [{"b", "x"}, frozenset({"b", "x"}), shared(heap, "b", "x")]
    for other in others:
        for result, expected in [
            (abc | other, {"a", "b", "c", "x"}),
            (abc & other, {"b"}),
            (abc - other, {"a", "c"}),
            (abc ^ other, {"a", "c", "x"}),
        ]:
            assert type(result) is set
            assert result == expected
        for result, expected in [
            (other | abc, {"a", "b", "c", "x"}),
            (other & abc, {"b"}),
            (other - abc, {"x"}),
            (other ^ abc, {"a", "c", "x"}),
        ]:
            assert type(result) is (frozenset if isinstance(other, frozenset) else set)
            assert result == expected
    with pytest.raises(TypeError, match="unsupported operand"):
        abc | ["x"]  # pyright: ignore
    builtin = {"x"}
    builtin |= abc
    assert type(builtin) is set
    assert builtin == {"a", "b", "c", "x"}


def test_comparisons_are_those_of_sets(heap: share.Heap, abc: share.set[Any]) -> None:
    for same in [{"a", "b", "c"}, frozenset("abc"), shared(heap, "c", "b", "a"), abc]:
        assert abc == same
        assert same == abc
        assert (abc != same) is False
        assert abc <= same <= abc
        assert not abc < same
    for more in [{"a", "b", "c", "d"}, frozenset("abcd"), shared(heap, *"abcd")]:
        assert abc != more
        assert abc < more
        assert more > abc
        assert more >= abc
        assert not abc >= more
    assert abc != ["a", "b", "c"]
    with pytest.raises(TypeError, match="not supported between"):
        assert abc < ["a"]  # pyright: ignore
    assert abc.issubset("abcd")
    assert abc.issuperset("ab")
    assert abc.isdisjoint("xyz")


def test_changes_in_place_take_what_builtin_sets_take(abc: share.set[Any]) -> None:
    same = abc
    abc |= {"d"}
    abc &= frozenset("bcdx")
    abc -= {"c"}
    abc ^= {"d", "e"}
    assert abc is same
    assert abc == {"b", "e"}
    abc.update("xy", ["z"], {"w": 1})
    abc.difference_update("x", {"b"})
    abc.intersection_update("eyzw", "zwy", "yzb")
    assert abc == {"y", "z"}
    abc.symmetric_difference_update("zzq")
    assert abc == {"y", "q"}
    abc.intersection_update()
    abc ^= abc
    assert abc == set()
    with pytest.raises(TypeError, match="unsupported operand"):
        abc |= "ab"  # pyright: ignore


def test_an_iterable_that_fails_changes_nothing(abc: share.set[Any]) -> None:
    def failing() -> Iterator[str]:
        yield "a"
        raise ZeroDivisionError

    for change in [
        abc.update,
        abc.intersection_update,
        abc.difference_update,
        abc.symmetric_difference_update,
    ]:
        with pytest.raises(ZeroDivisionError):
            change(failing())
        with pytest.raises(TypeError, match="unhashable type: 'list'"):
            change(["b", []])
        with pytest.raises(TypeError, match="not iterable"):
            change(1)  # pyright: ignore
    with pytest.raises(ZeroDivisionError):
        abc.update("d", failing())
    assert abc == {"a", "b", "c"}


def test_what_cannot_change_alone_is_a_member(heap: share.Heap, abc: share.set[Any]) -> None:
    containers: list[object] = [{}, {1}, deque("a")]
    containers += [heap.share(each) for each in containers]
    containers.append([])
    for container in containers:
        with pytest.raises(TypeError, match="unhashable type"):
            abc.add(container)
        with pytest.raises(TypeError, match="unhashable type"):
            abc.add((1, container))
    with pytest.raises(TypeError, match=r"^the object cannot be shared: it is of type object; "):
        abc.add(object())
    with pytest.raises(TypeError, match=r"^\['x'\]\{<object .*>\} cannot be shared: it is "):
        heap.root["d"] = {"x": {object()}}
    assert len(abc) == 3


def test_what_cannot_be_shared_is_found_by_what_it_equals(abc: share.set[Any]) -> None:
    class Name(str):
        """Equal to strings, and yet none."""

        __slots__ = ()

    assert object() not in abc
    assert Name("a") in abc
    abc.discard(object())
    abc.remove(Name("a"))
    abc -= {Name("b"), object()}
    assert abc == {"c"}
    with pytest.raises(TypeError, match="it is of type Name; "):
        abc.add(Name("d"))


def test_a_set_is_looked_for_as_the_frozenset_that_equals_it(heap: share.Heap) -> None:
    outer = shared(heap, frozenset("ab"), frozenset("cd"))
    assert {"a", "b"} in outer
    assert shared(heap, "c", "d") in outer
    outer.remove({"b", "a"})
    outer.discard(shared(heap, "d", "c"))
    assert len(outer) == 0


def test_iterating_goes_through_the_members_there_were(abc: share.set[Any]) -> None:
    seen: list[object] = []
    for member in abc:
        seen.append(member)
        abc.clear()
        abc.add((member, "new"))
    assert sorted(map(str, seen)) == ["a", "b", "c"]


def test_copies_are_builtin_sets(abc: share.set[Any]) -> None:
    for made in [abc.copy(), copy.copy(abc), copy.deepcopy(abc)]:
        assert type(made) is set
        assert made == {"a", "b", "c"}


def test_a_pickle_leads_to_the_same_set(abc: share.set[Any]) -> None:
    assert pickle.loads(pickle.dumps(abc)) is abc


def test_its_representation_names_it(heap: share.Heap) -> None:
    assert repr(shared(heap)) == "share.set()"
    assert repr(shared(heap, 1)) == "share.set({1})"


def test_it_has_no_hash_and_no_constructor(abc: share.set[Any]) -> None:
    with pytest.raises(TypeError, match=r"unhashable type: 'share\.set'"):
        hash(abc)
    with pytest.raises(TypeError, match=r"^make a shared object with heap\.share"):
        share.set([1, 2])  # pyright: ignore
    with pytest.raises(TypeError, match="make a shared object with"):
        share.set()


def test_others_see_a_change_whole_or_not_at_all(heap: share.Heap) -> None:
    numbers = shared(heap)
    odd = range(1, 600, 2)

    def change() -> None:
        for _ in range(300):
            numbers.update(range(600), ["end"])
            numbers.intersection_update(odd, range(600))
            numbers.symmetric_difference_update(range(600))
            numbers.difference_update(range(600))

    child = in_child(change)
    sizes = {0}
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        sizes.add(len(numbers))
        sizes.add(len(numbers.copy()))
    assert sizes <= {0, 601, 300}


def test_two_processes_take_each_member_once(heap: share.Heap) -> None:
    numbers = shared(heap, *range(20_000))
    heap.root["theirs"] = set[object]()
    theirs: share.set[Any] = heap.root["theirs"]
    assert isinstance(theirs, share.set)

    def take_all(into: "set[object] | share.set[Any]") -> None:
        while True:
            try:
                into.add(numbers.pop())
            except KeyError:
                return

    child = in_child(lambda: take_all(theirs))
    ours: set[object] = set()
    take_all(ours)
    assert os.waitpid(child, 0)[1] == 0
    assert len(ours) + len(theirs) == 20_000
    assert ours | theirs == set(range(20_000))


def test_a_child_that_is_killed_while_it_changes_leaves_a_whole_set(heap: share.Heap) -> None:
    numbers = shared(heap)
    texts = [f"a member that does not fit into its cell: {number}" for number in range(100)]
    ready, tell = os.pipe()

    def toggle() -> None:
        numbers.symmetric_difference_update(texts)
        os.write(tell, b"!")
        while True:
            numbers.symmetric_difference_update(texts)

    for _ in range(20):
        numbers.clear()
        child = in_child(toggle)
        assert os.read(ready, 1) == b"!"
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert numbers in (set(), set(texts))
        numbers.update(texts)
        assert numbers == set(texts)
    assert heap.gc() is not None
    assert numbers == set(texts)


def test_what_is_asked_about_few_members_copies_none_of_many(
    heap: share.Heap, monkeypatch: pytest.MonkeyPatch
) -> None:
    many: Any = heap.share({*range(100)})
    few_shared: Any = heap.share({1, 2})

    def copied(members: Any) -> set[Any]:
        assert len(members) < 100
        return {*members}

    monkeypatch.setattr(share.set, "copy", copied)
    for few in ({1, 2}, frozenset((1, 2)), few_shared):
        assert many >= few
        assert many > few
        assert few <= many
        assert few < many
        assert many != few
        assert not many <= set()
        assert many & few == few & many == {1, 2}
    for few in ({1, 2}, few_shared, [1, 2, 1], (1, 2), {1: 0, 2: 0}):
        assert many.issuperset(few)
        assert not many.isdisjoint(few)
        assert many.intersection(few, [2, 3]) == {2}
    assert few_shared.issubset(many)
    assert many.isdisjoint([-1, "1"])
    assert not many.issuperset({1, -1})
    assert type(frozenset((1, 2)) & many) is frozenset


def test_few_members_are_looked_up_as_of_one_moment(heap: share.Heap) -> None:
    many: Any = heap.share({*range(100)})

    looked: list[Any] = []

    def look(members: Any) -> bool:
        looked.append(type(members))
        found = 1 in members
        if len(looked) == 1:
            many.remove(1)
        return found

    assert not share_set._at_one_moment(many, look)  # pyright: ignore[reportPrivateUsage]
    assert looked == [share.set, set]


def test_members_that_have_no_hash_or_are_not_found_at_once_are_asked_about_as_ever(
    heap: share.Heap,
) -> None:
    texts: Any = heap.share({"a", "b", "c"})
    with pytest.raises(TypeError, match="unhashable"):
        texts.issuperset(["a", []])
    assert not texts.issuperset(["z", []])
    with pytest.raises(TypeError, match="unhashable"):
        texts.intersection([[]])
    assert texts.isdisjoint([PurePath("a")])
    assert not texts.isdisjoint([UserString("a")])
