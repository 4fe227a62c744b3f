"""Shared deques, seen from Python."""

import copy
import os
import pickle
import signal
from collections import deque
from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any, cast

import pytest
from forked import in_child

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


@pytest.fixture
def abc(heap: share.Heap) -> share.deque[Any]:
    return shared(heap, "abc")


def shared(
    heap: share.Heap, items: Iterable[object], maxlen: int | None = None
) -> share.deque[Any]:
    made: share.deque[Any] = heap.share(deque(items, maxlen))
    assert isinstance(made, share.deque)
    return made


def test_a_deque_that_is_given_to_a_shared_object_becomes_shared(heap: share.Heap) -> None:
    heap.root["jobs"] = deque([1, ("two", [3])], maxlen=3)
    jobs: share.deque[Any] = heap.root["jobs"]
    assert isinstance(jobs, share.deque)
    assert jobs is heap.root["jobs"]
    assert jobs.maxlen == 3
    pair = jobs[1]
    assert isinstance(pair, tuple)
    assert isinstance(pair[1], share.list)
    jobs.append({"four": deque("x")})
    jobs.append(5)
    assert len(jobs) == 3
    assert jobs[0] == pair
    assert jobs[1]["four"][0] == "x"  # pyright: ignore
    assert isinstance(jobs, MutableSequence)


def test_items_come_and_go_at_both_ends(abc: share.deque[Any]) -> None:
    abc.append("d")
    abc.appendleft("_")
    abc.extend("ef")
    abc.extendleft("12")
    assert "".join(map(str, abc)) == "21_abcdef"
    assert (abc.pop(), abc.popleft()) == ("f", "2")
    abc.rotate()
    abc.rotate(-3)
    abc.reverse()
    assert "".join(map(str, abc)) == "_1edcba"
    abc.clear()
    for take in (abc.pop, abc.popleft):
        with pytest.raises(IndexError, match="pop from an empty deque"):
            take()


def test_items_have_indices(abc: share.deque[Any]) -> None:
    abc[0] = "A"
    abc[-1] = ["C"]
    assert abc[0] == "A"
    del abc[1]
    abc.insert(1, "b")
    abc.insert(100, "end")
    abc.insert(-100, "begin")
    assert abc.index("b") == 2
    assert abc.index("b", -3) == 2
    assert abc.count("A") == 1
    abc.remove("A")
    assert len(abc) == 4
    for wrong in (4, -5, 2**80):
        with pytest.raises(IndexError, match="deque index out of range"):
            abc[wrong]
        with pytest.raises(IndexError, match="deque index out of range"):
            abc[wrong] = 1
        with pytest.raises(IndexError, match="deque index out of range"):
            del abc[wrong]
    with pytest.raises(TypeError, match="sequence index must be integer, not 'slice'"):
        abc[0:1]  # pyright: ignore
    with pytest.raises(ValueError, match="'b' is not in deque"):
        abc.index("b", 2)
    with pytest.raises(ValueError, match="x not in deque"):
        abc.remove("A")


def test_a_full_deque_loses_items_at_the_other_end(heap: share.Heap) -> None:
    full = shared(heap, range(10), maxlen=3)
    assert full == deque([7, 8, 9])
    full.append(10)
    full.appendleft(7)
    assert list(full) == [7, 8, 9]
    full.extend(range(100))
    assert list(full) == [97, 98, 99]
    full.extendleft(iter(range(5)))
    assert list(full) == [4, 3, 2]
    full *= 2
    assert list(full) == [4, 3, 2]
    with pytest.raises(IndexError, match="deque already at its maximum size"):
        full.insert(0, 1)
    with pytest.raises(AttributeError):
        full.maxlen = 4  # pyright: ignore
    none = shared(heap, "abc", maxlen=0)
    none.append(1)
    none.extend("de")
    assert list(none) == []


@pytest.mark.parametrize("maxlen", [None, 3, 5, 7, 100])
@pytest.mark.parametrize("times", [-1, 0, 1, 2, 3, 20])
def test_repeating_does_what_it_does_to_a_builtin_deque(
    heap: share.Heap, maxlen: int | None, times: int
) -> None:
    expected = deque("abc", maxlen)
    made = same = shared(heap, "abc", maxlen)
    assert made * times == expected * times
    assert times * made == expected * times
    expected *= times
    made *= times
    assert made is same
    assert made == expected


def test_sums_are_builtin_deques(heap: share.Heap, abc: share.deque[Any]) -> None:
    limited = shared(heap, "xyz", maxlen=4)
    for result, expected in [
        (abc + deque("d"), deque("abcd")),
        (deque("d") + abc, deque("dabc")),
        (abc + limited, deque("abcxyz")),
        (limited + abc, deque("zabc", 4)),
    ]:
        assert type(result) is deque
        assert result == expected
        assert result.maxlen == expected.maxlen
    with pytest.raises(TypeError, match="unsupported operand"):
        abc + "d"  # pyright: ignore
    same = abc
    abc += "de"
    abc += abc
    assert abc is same
    assert "".join(map(str, abc)) == "abcdeabcde"


def test_comparisons_are_those_of_deques(heap: share.Heap, abc: share.deque[Any]) -> None:
    for other in (deque("abc"), shared(heap, "abc", 5), abc):
        assert abc == other
        assert other == abc
        assert abc <= other
        assert abc >= other
        assert not abc < other
    for other in (deque("abd"), shared(heap, "abd"), deque("abcd")):
        assert abc != other
        assert abc < other
        assert other > abc
        assert other >= abc
    assert abc != ["a", "b", "c"]
    with pytest.raises(TypeError, match="not supported between"):
        assert abc < ["b"]  # pyright: ignore


def test_iterating_goes_through_the_items_there_were(abc: share.deque[Any]) -> None:
    forth = iter(abc)
    back = reversed(abc)
    abc.clear()
    abc.extend("xyz")
    assert list(forth) == ["a", "b", "c"]
    assert list(back) == ["c", "b", "a"]


def test_python_says_what_equals_an_object(heap: share.Heap) -> None:
    class Anything:
        """Equal to whatever it is compared with, also a NaN."""

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # pyright: ignore

    two = deque([2])
    mixed = shared(heap, [1, two, (3,), {4}, two.copy(), float("nan")])
    assert two in mixed
    assert mixed.index(two) == 1
    assert mixed.count(two) == 2
    assert (3,) in mixed
    assert {4} in mixed
    assert frozenset({4}) in mixed
    assert mixed[1] in mixed
    assert object() not in mixed
    mixed.remove(two)
    assert mixed.index(two) == 3
    mixed.remove({4})
    for _ in range(3):
        mixed.remove(Anything())
    with pytest.raises(ValueError, match="x not in deque"):
        mixed.remove(Anything())
    assert len(mixed) == 1


def test_what_fails_changes_nothing(abc: share.deque[Any]) -> None:
    def failing() -> Iterator[str]:
        yield "d"
        raise ZeroDivisionError

    for change in (abc.extend, abc.extendleft):
        with pytest.raises(ZeroDivisionError):
            change(failing())
        with pytest.raises(
            TypeError, match=r"^the object cannot be shared: it is of type object; "
        ):
            change(["d", object()])
        with pytest.raises(TypeError, match="not iterable"):
            change(1)  # pyright: ignore
    with pytest.raises(TypeError, match=r"^\['x'\]\[0\] cannot be shared: it is of type object; "):
        abc.append({"x": deque([object()])})
    assert list(abc) == ["a", "b", "c"]


def test_a_deque_can_contain_itself(heap: share.Heap) -> None:
    inner: deque[object] = deque([1], maxlen=4)
    inner.append(inner)
    ring: share.deque[Any] = heap.share(inner)
    assert isinstance(ring, share.deque)
    assert ring[1] is ring
    assert repr(ring) == "share.deque([1, [...]], maxlen=4)"
    copied = copy.deepcopy(ring)
    assert type(copied) is deque
    assert copied[1] is copied
    assert copied.maxlen == 4
    assert copy.copy(ring)[1] is ring
    ring.append(ring.popleft())
    assert ring[0] is ring


def test_a_pickle_leads_to_the_same_deque(abc: share.deque[Any]) -> None:
    assert pickle.loads(pickle.dumps(abc)) is abc


def test_an_object_that_was_taken_out_stays(heap: share.Heap) -> None:
    jobs = shared(heap, [[number] for number in range(4)])
    taken = [jobs.pop(), jobs.popleft()]
    (first, second) = jobs
    jobs.clear()
    heap.gc()
    assert [job[0] for job in (*taken, first, second)] == [3, 0, 1, 2]  # pyright: ignore


def test_it_has_no_hash_and_no_constructor(abc: share.deque[Any]) -> None:
    with pytest.raises(TypeError, match=r"unhashable type: 'share\.deque'"):
        hash(abc)
    with pytest.raises(TypeError, match=r"^make a shared object with heap\.share"):
        share.deque([1, 2])  # pyright: ignore


def test_others_see_a_change_whole_or_not_at_all(heap: share.Heap) -> None:
    numbers = shared(heap, [])

    def change() -> None:
        for _ in range(300):
            numbers.extend(range(300))
            numbers.rotate(150)
            numbers.extendleft(range(300))
            numbers.clear()

    child = in_child(change)
    sizes = {0}
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        seen = list(numbers)
        sizes.add(len(seen))
        assert sorted(map(int, map(str, seen[:300]))) in ([], list(range(300)))
    assert sizes <= {0, 300, 600}


def test_what_one_process_puts_in_another_takes_out_in_order(heap: share.Heap) -> None:
    queue = shared(heap, [])
    count = 20_000

    def put() -> None:
        for number in range(count):
            queue.append(number if number % 100 else [number])

    child = in_child(put)
    expected = 0
    while expected < count:
        try:
            item: Any = queue.popleft()
        except IndexError:
            continue
        if isinstance(item, share.list):
            item = cast("share.list[Any]", item)[0]
        assert item == expected
        expected += 1
    assert os.waitpid(child, 0)[1] == 0
    assert len(queue) == 0


def test_a_child_that_is_killed_while_it_changes_leaves_a_whole_deque(heap: share.Heap) -> None:
    texts = [f"an item that does not fit into its cell: {number}" for number in range(100)]
    items = shared(heap, [])
    ready, tell = os.pipe()

    def change() -> None:
        os.write(tell, b"!")
        while True:
            items.extend(texts)
            items.rotate(3)
            items.clear()

    rotated = deque(texts)
    rotated.rotate(3)
    for _ in range(20):
        items.clear()
        child = in_child(change)
        assert os.read(ready, 1) == b"!"
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert items.copy() in (deque(), deque(texts), rotated)
    assert heap.gc() is not None
