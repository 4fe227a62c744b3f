"""The shared dict: what it adds to a builtin one, and where it has to differ."""

import collections
import collections.abc
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

import cpython_suites
import pytest
from forked import child

from ungil import share

# Why a test of CPython's cannot pass.
FOREIGN = "it shares objects of a class of its own"
DERIVED = "a proxy is made by its heap, not by calling a class derived from it"
RESIZES = "a dict may change during an iteration: each that stays is seen once"
COPIES = "copies are ordinary dicts"
NO_HEAP = "fromkeys needs a heap, which a class has not"
REPR = "the repr says that it is shared"
PICKLES = "iterators are not pickled"
CPYTHON = "about the insides of CPython's dict"
WORDS = "CPython 3.14 says more in that error"
# Tests that are new in 3.14, or have changed there.
OF_3_14 = {
    "test_clear_at_lookup": FOREIGN,
    "test_hash_collision_remove_add": FOREIGN,
    "test_overwrite_managed_dict": FOREIGN,
    "test_unhashable_key": WORDS,
    "test_update_shared_keys": FOREIGN,
}

MAPPING = {
    "test_copy": COPIES,
    "test_fromkeys": NO_HEAP,
}
IN_HEAP = cpython_suites.shared_in_own_heap(dict, share.dict)

TestMapping = cpython_suites.suite(
    "test.mapping_tests",
    "TestMappingProtocol",
    attributes={"type2test": IN_HEAP},
    omitted=MAPPING,
)
TestHashMapping = cpython_suites.suite(
    "test.mapping_tests",
    "TestHashMappingProtocol",
    attributes={"type2test": IN_HEAP},
    omitted=MAPPING
    | {
        "test_eq": FOREIGN,
        "test_getitem": FOREIGN,
        "test_pop": FOREIGN,
        "test_repr": REPR,
        "test_setdefault": FOREIGN,
    },
)
TestDict = cpython_suites.suite(
    "test.test_dict",
    "DictTest",
    names={"dict": IN_HEAP},
    displays=(dict,),
    omitted={
        "test_bad_key": FOREIGN,
        "test_container_iterator": FOREIGN,
        "test_copy_maintains_tracking": FOREIGN,
        "test_dict_contain_use_after_free": FOREIGN,
        "test_dict_copy_order": DERIVED,
        "test_eq": FOREIGN,
        "test_equal_operator_modifying_operand": FOREIGN,
        "test_errors_in_view_containment_check": FOREIGN,
        "test_free_after_iterating": DERIVED,
        "test_fromkeys": NO_HEAP,
        "test_fromkeys_operator_modifying_dict_operand": FOREIGN,
        "test_fromkeys_operator_modifying_set_operand": NO_HEAP,
        "test_getitem": FOREIGN,
        "test_init_use_after_free": FOREIGN,
        "test_itemiterator_pickling": PICKLES,
        "test_items": REPR,
        "test_iterator_pickling": PICKLES,
        "test_keys": REPR,
        "test_merge_and_mutate": FOREIGN,
        "test_missing": DERIVED,
        "test_mutating_iteration": RESIZES,
        "test_mutating_iteration_delete": RESIZES,
        "test_mutating_iteration_delete_over_items": RESIZES,
        "test_mutating_iteration_delete_over_values": RESIZES,
        "test_mutating_lookup": FOREIGN,
        "test_oob_indexing_dictiter_iternextitem": FOREIGN,
        "test_pop": FOREIGN,
        "test_reentrant_insertion": FOREIGN,
        "test_repr": REPR,
        "test_resize2": FOREIGN,
        "test_reverseitemiterator_pickling": PICKLES,
        "test_reverseiterator_pickling": PICKLES,
        "test_reversevaluesiterator_pickling": PICKLES,
        "test_setdefault": FOREIGN,
        "test_setdefault_atomic": FOREIGN,
        "test_setitem_atomic_at_resize": FOREIGN,
        "test_store_evilattr": CPYTHON,
        "test_str_nonstr": FOREIGN,
        "test_track_dynamic": CPYTHON,
        "test_track_literals": CPYTHON,
        "test_values": REPR,
        "test_valuesiterator_pickling": PICKLES,
    }
    | (OF_3_14 if sys.version_info >= (3, 14) else {}),
)


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 27)


@pytest.fixture
def root(heap: share.Heap) -> share.dict[Any, Any]:
    assert isinstance(heap.root, share.dict)
    return heap.root


def shared(heap: share.Heap, items: dict[Any, Any]) -> share.dict[Any, Any]:
    made: share.dict[Any, Any] = heap.share(items)
    assert isinstance(made, share.dict)
    return made


def test_it_is_a_mutable_mapping_that_cannot_be_hashed(root: share.dict[Any, Any]) -> None:
    assert isinstance(root, collections.abc.MutableMapping)
    with pytest.raises(TypeError, match=r"unhashable type: 'share\.dict'"):
        hash(root)
    generic: Any = share.dict
    assert generic[str, int].__origin__ is share.dict


UNHASHABLE: list[object] = [[], {}, {1: []}, ([],), (1, ({}, 2))]


@pytest.mark.parametrize("key", UNHASHABLE, ids=repr)
def test_what_cannot_be_hashed_is_no_key_in_any_method(heap: share.Heap, key: object) -> None:
    made = shared(heap, {})
    uses: list[Callable[[], object]] = [
        lambda: made[key],
        lambda: made.get(key),
        lambda: made.__setitem__(key, 1),
        lambda: made.__delitem__(key),
        lambda: key in made,
        lambda: made.pop(key, None),
        lambda: made.setdefault(key, 1),
        lambda: made.incr(key),
        lambda: made.cas(key, 1, 2),
        lambda: made.update([(key, 1)]),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="unhashable type"):
            use()
    assert made == {}


def test_what_cannot_be_added_is_told_with_its_type(heap: share.Heap) -> None:
    containers: list[Any] = [shared(heap, {0: 1}), heap.share([1])]
    for made in containers:
        with pytest.raises(TypeError, match=r"^only an int, .* not an object of type Fraction$"):
            made.incr(0, Fraction(1))


def test_a_shared_container_is_no_key_either(heap: share.Heap) -> None:
    made = shared(heap, {"list": []})
    for key in made, made["list"], (made["list"],):
        with pytest.raises(TypeError, match=r"unhashable type: 'share\.(dict|list)'"):
            made[key] = 1


def test_shared_objects_keep_their_identity_through_every_method(heap: share.Heap) -> None:
    made = shared(heap, {})
    inner: share.list[Any] = made.setdefault("inner", [])
    assert isinstance(inner, share.list)
    assert made.setdefault("inner", {}) is inner
    assert made["inner"] is made.get("inner") is inner
    assert made.copy()["inner"] is inner
    assert next(iter(made.values())) is inner
    assert list(made.items()) == [("inner", inner)]
    made["pair"] = (1, inner)
    pair = made.pop("pair")
    assert isinstance(pair, tuple)
    assert pair[1] is inner
    key, value = made.popitem()
    assert key == "inner"
    assert value is inner
    inner.append("still there")
    heap.gc()
    assert inner == ["still there"]


def test_what_pop_returns_survives_the_removal(heap: share.Heap) -> None:
    made = shared(heap, {number: {"number": number} for number in range(3)})
    for number in range(2):
        popped = made.pop(number)
        heap.gc()
        assert popped == {"number": number}
    _, last = made.popitem()
    heap.gc()
    assert last == {"number": 2}


def test_pop_tells_none_from_no_default(root: share.dict[Any, Any]) -> None:
    assert root.pop("missing", None) is None
    assert root.pop("missing", default=1) == 1
    with pytest.raises(KeyError, match=r"^\(1, 2\)$"):
        root.pop((1, 2))


def test_objects_nested_too_deeply_raise_recursion_error(root: share.dict[Any, Any]) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        root["deep"] = deep
    assert len(root) == 0


def test_a_dict_that_contains_itself_can_be_printed(heap: share.Heap) -> None:
    made = shared(heap, {})
    made["self"] = made
    made["list"] = [made]
    inside = "share.dict({...})"
    assert repr(made) == f"share.dict({{'self': {inside}, 'list': share.list([{inside}])}})"


def test_it_equals_every_dict_of_the_same_contents(heap: share.Heap) -> None:
    contents: dict[object, object] = {"a": [1, {"b": (2, None)}], "c": {}}
    made = shared(heap, contents)
    assert made == contents
    assert contents == made
    assert made == shared(heap, contents)
    assert made != {**contents, "a": [1]}
    assert made != [*contents]


def test_merging_makes_an_ordinary_dict_and_merging_in_place_does_not(heap: share.Heap) -> None:
    made = shared(heap, {1: 1, 2: 2})
    for merged in made | {2: 3}, made | shared(heap, {2: 3}):
        assert type(merged) is dict
        assert merged == {1: 1, 2: 3}
    merged = {2: 3} | made
    assert type(merged) is dict
    assert merged == {1: 1, 2: 2}
    same = made
    same |= [(3, 3)]
    assert same is made
    assert made == {1: 1, 2: 2, 3: 3}


def test_cas_sets_what_is_there_only(heap: share.Heap) -> None:
    made = shared(heap, {"number": 1, "inner": {}})
    assert made.cas("number", 1.0, [2])
    inner = made["number"]
    assert not made.cas("number", 1, 3)
    assert not made.cas("missing", None, 3)
    assert "missing" not in made
    assert made.cas("number", inner, None)
    assert made["number"] is None
    with pytest.raises(TypeError, match="this dict is not shared"):
        made.cas("inner", {}, None)


def test_cas_puts_in_what_is_absent_and_deletes(heap: share.Heap) -> None:
    made = shared(heap, {"there": None})
    assert not made.cas("there", share.ABSENT, 1)
    assert made.cas("new", share.ABSENT, {"inner": 1})
    assert made["new"] == {"inner": 1}
    assert not made.cas("there", 0, share.ABSENT)
    assert made.cas("there", None, share.ABSENT)
    assert made.cas("there", share.ABSENT, share.ABSENT)
    assert [*made] == ["new"]
    with pytest.raises(TypeError):
        made["new"] = share.ABSENT
    assert repr(share.ABSENT) == "share.ABSENT"


def test_what_is_read_again_and_again_is_what_was_put_in(heap: share.Heap) -> None:
    values = [1, 1.0, True, "1", b"1", None, "", 0, -0.0, 2**63 - 1, -(2**63), "\ud800", "é" * 7]
    made = shared(heap, dict(enumerate(values)))
    for _ in range(3):
        for key, value in enumerate(values):
            assert (type(made[key]), repr(made[key])) == (type(value), repr(value))
    # More than are kept.
    many = shared(heap, {f"key {n}": n + 1_000 for n in range(2_000)})
    for _ in range(3):
        assert all(many[f"key {n}"] == n + 1_000 for n in range(2_000))


def test_a_number_replaces_a_number_or_anything_else(heap: share.Heap) -> None:
    made = shared(heap, {"a": 1, 2: 1.5, "long key " * 9: 1, 3.0: "text", "t": (1,)})
    for key in [*made]:
        for value in (5, 2.5, 7, "text", 2**70, True, 9):
            made[key] = value
            assert (type(made[key]), made[key]) == (type(value), value)
    assert len(made) == 5
    # Equal to a key that is there.
    made[2.0] = 11
    assert made[2] == 11
    made[3] = 12
    assert (made[3.0], len(made)) == (12, 5)


def test_keys_that_are_deleted_while_they_are_iterated_over_are_all_seen(heap: share.Heap) -> None:
    made = shared(heap, {number: str(number) for number in range(1_000)})
    seen: list[object] = []
    for key in made:
        seen.append(key)
        del made[key]
    assert seen == list(range(1_000))
    assert not made


def test_an_iteration_ends_though_each_step_inserts(heap: share.Heap) -> None:
    made = shared(heap, {0: 0})
    for number, key in enumerate(made):
        assert isinstance(key, int)
        made[key + 1] = number
    assert len(made) == 2


@pytest.mark.parametrize("part", ["keys", "values", "items"])
def test_views_go_both_ways_through_many_batches(heap: share.Heap, part: str) -> None:
    ordinary: dict[object, object] = {number: f"value {number}" for number in range(1_000)}
    made = shared(heap, ordinary)
    view: Any = getattr(made, part)()
    expected: Any = getattr(ordinary, part)()
    assert list(view) == list(expected)
    assert list(reversed(view)) == list(reversed(expected))
    assert len(view) == 1_000
    first: list[object] = [*islice(view, 3)]
    assert first == [*islice(expected, 3)]


def test_views_of_keys_and_items_are_sets(heap: share.Heap) -> None:
    made = shared(heap, {1: "one", 2: "two"})
    assert made.keys() & {2, 3} == {2}
    assert made.keys() | [3] == {1, 2, 3}
    assert {2, 3} - made.keys() == {3}
    assert made.keys() == {1, 2}
    assert made.keys() < {1, 2, 3}
    assert made.keys().isdisjoint([3])
    assert made.items() ^ {(1, "one")} == {(2, "two")}
    assert (1, "one") in made.items()
    items: Any = made.items()
    assert 1 not in items
    made[3] = "three"
    assert made.keys() == {1, 2, 3}


def test_an_update_is_seen_whole_or_not_at_all(root: share.dict[Any, Any]) -> None:
    keys = [str(number) for number in range(50)]
    root.update(dict.fromkeys(keys, 0))

    def write() -> None:
        for generation in range(1, 300):
            root.update(dict.fromkeys(keys, generation))
        root["done"] = True

    with child(write):
        while not root.get("done"):
            values = root.copy()
            values.pop("done", None)
            assert len(set(values.values())) == 1
    assert set(root.values()) == {299, True}


def test_one_process_alone_wins_each_setdefault_pop_and_cas(root: share.dict[Any, Any]) -> None:
    rounds = range(2_000)
    root.update(balance=0, popped=0, keys={}, wins={"parent": 0, "child": 0})
    root["there"] = dict.fromkeys(rounds)
    keys: share.dict[Any, Any] = root["keys"]
    there: share.dict[Any, Any] = root["there"]
    wins: share.dict[Any, Any] = root["wins"]
    assert isinstance(keys, share.dict)
    assert isinstance(there, share.dict)
    assert isinstance(wins, share.dict)

    def contend(name: str) -> None:
        for number in rounds:
            if keys.setdefault(number, name) == name:
                wins.incr(name)
            if there.pop(number, 0) is None:
                root.incr("popped")
            is_done = False
            while not is_done:
                balance = root["balance"]
                assert isinstance(balance, int)
                is_done = root.cas("balance", balance, balance + 1)

    with child(lambda: contend("child")):
        contend("parent")
    won: dict[Any, Any] = wins.copy()
    assert collections.Counter(won) == collections.Counter(keys.values())
    assert len(keys) == root["popped"] == len(rounds)
    assert root["balance"] == 2 * len(rounds)


def test_iterating_while_another_process_changes_everything_sees_what_stays(
    root: share.dict[Any, Any],
) -> None:
    root.update({f"stays {number}": {"number": number} for number in range(300)})
    stays = set(root)

    def change() -> None:
        for round_ in range(60):
            root.update({f"goes {number}": [round_] for number in range(100)})
            for number in range(100):
                del root[f"goes {number}"]
        root["done"] = True

    with child(change):
        while "done" not in root:
            keys = [key for key, value in root.items() if isinstance(value, share.dict)]
            assert len(keys) == len(stays)
            assert set(keys) == stays


def test_threads_iterate_and_change_without_harm(root: share.dict[Any, Any]) -> None:
    root.update({number: [number] for number in range(100)})
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for number in range(100):
                root[number] = [number]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(100):
            for key, value in root.items():
                assert value == [key]
    finally:
        stop.set()
        thread.join()
