"""Shared containers and their builtins, to which the same things are done.

Each operation is done to a builtin container, and to a shared one by one of several processes,
which are told by pipes what to do: one operation at a time, so that what has to come out is known.
What comes out must be equal, with its types, or the same exception; and then every process must see
what the builtin contains.
"""

from __future__ import annotations

import copy
import multiprocessing
import operator
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from suite import PATIENCE_S

from ungil import share

Strategy = st.SearchStrategy[Any]
Operations = Mapping[str, tuple[Callable[..., object], tuple[Strategy, ...]]]


def shown(value: Any) -> object:
    """What a value consists of: equal for shared and ordinary ones, not for different types."""
    # Of `value`, which the checks below would make something partly known.
    inside: Any = value
    if isinstance(value, (dict, share.dict)):
        return ["dict", *((shown(key), shown(one)) for key, one in inside.items())]
    if isinstance(value, (list, share.list)):
        return ["list", *map(shown, inside)]
    if isinstance(value, tuple):
        return ("tuple", *map(shown, inside))
    if isinstance(value, (set, frozenset, share.set)):
        # In any order.
        return ("set", *sorted(repr(shown(member)) for member in inside))
    if isinstance(value, (deque, share.deque)):
        return ["deque", *map(shown, inside)]
    return f"{type(value).__name__} {value!r}"


def _order(value: object) -> str:
    """A key to sort by that anything has."""
    return repr(shown(value))


# Some equal ones among them, which are the same key: the first one stays.
KEYS: Strategy = st.sampled_from([0, 1, 1.0, True, "a", "b", b"a", None, (), (1, "a")]) | st.one_of(
    st.integers(), st.text(max_size=20), st.binary(max_size=20), st.frozensets(st.integers(0, 2))
)
# No NaN: it is found by its identity, which a copy does not keep.
FLAT: Strategy = KEYS | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
VALUES: Strategy = st.recursive(
    FLAT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=4,
)
# No equal ones of several types: which of them is in an intersection depends on the sizes.
MEMBERS: Strategy = st.integers(-2, 12) | st.sampled_from(["a", "b", (1, "a"), None, b"longer" * 9])
MANY: Strategy = st.sets(MEMBERS) | st.lists(MEMBERS)
INDICES = st.integers(-8, 8)
ENDS = st.none() | INDICES
SLICES = st.builds(slice, ENDS, ENDS, st.none() | st.integers(-3, 3))
ITEMS = st.lists(VALUES, max_size=4)


def _set(container: Any, key: object, value: object) -> None:
    container[key] = value


def _delete(container: Any, key: object) -> None:
    del container[key]


def _inner(container: Any, key: object, value: object) -> object:
    """Changes what is inside: it is shared by reference."""
    return container[key].append(value)


def _update(container: Any, other: object) -> object:
    container |= other
    return container


def _extend(container: Any, other: object) -> object:
    container += other
    return container


def _repeat(container: Any, times: int) -> object:
    container *= times
    return container


def _sort(container: Any, reverse: bool) -> None:
    container.sort(key=_order, reverse=reverse)


def _both(function: Callable[[Any, Any], object]) -> Callable[[Any, Any], list[object]]:
    """An operator with its operands in both orders."""
    return lambda one, other: [function(one, other), function(other, one)]


def _list(container: Any) -> list[object]:
    return list(container)


def _reversed(container: Any) -> list[object]:
    return list(reversed(container))


def _method(name: str) -> Callable[..., object]:
    def call(container: object, *arguments: object) -> object:
        return getattr(container, name)(*arguments)

    return call


def _views(container: Any) -> list[object]:
    return [list(container.keys()), list(container.values()), list(container.items())]


DICT: Operations = {
    "set": (_set, (KEYS, VALUES)),
    "get item": (operator.getitem, (KEYS,)),
    "delete": (_delete, (KEYS,)),
    "get": (_method("get"), (KEYS, VALUES)),
    "contains": (operator.contains, (KEYS,)),
    "len": (len, ()),
    "iterate": (_list, ()),
    "reversed": (_reversed, ()),
    "views": (_views, ()),
    "setdefault": (_method("setdefault"), (KEYS, VALUES)),
    "pop": (_method("pop"), (KEYS,)),
    "pop or": (_method("pop"), (KEYS, VALUES)),
    "popitem": (_method("popitem"), ()),
    "update": (_method("update"), (st.dictionaries(KEYS, VALUES, max_size=4),)),
    "update with": (_update, (st.dictionaries(KEYS, VALUES, max_size=4),)),
    "inside": (_inner, (KEYS, VALUES)),
    "copy": (_method("copy"), ()),
    "equals": (operator.eq, (st.dictionaries(KEYS, VALUES, max_size=2),)),
    "clear": (_method("clear"), ()),
}
LIST: Operations = {
    "append": (_method("append"), (VALUES,)),
    "set": (_set, (INDICES, VALUES)),
    "set slice": (_set, (SLICES, ITEMS)),
    "get item": (operator.getitem, (INDICES,)),
    "get slice": (operator.getitem, (SLICES,)),
    "delete": (_delete, (INDICES,)),
    "delete slice": (_delete, (SLICES,)),
    "insert": (_method("insert"), (INDICES, VALUES)),
    "pop": (_method("pop"), ()),
    "pop at": (_method("pop"), (INDICES,)),
    "remove": (_method("remove"), (VALUES,)),
    "index": (_method("index"), (VALUES,)),
    "index within": (_method("index"), (VALUES, INDICES, INDICES)),
    "count": (_method("count"), (VALUES,)),
    "contains": (operator.contains, (VALUES,)),
    "len": (len, ()),
    "iterate": (_list, ()),
    "reversed": (_reversed, ()),
    "extend": (_method("extend"), (ITEMS,)),
    "add in place": (_extend, (ITEMS,)),
    "repeat in place": (_repeat, (st.integers(-1, 2),)),
    "concatenate": (_both(operator.add), (ITEMS,)),
    "repeat": (operator.mul, (st.integers(-1, 2),)),
    "reverse": (_method("reverse"), ()),
    "sort": (_sort, (st.booleans(),)),
    "inside": (_inner, (INDICES, VALUES)),
    "copy": (_method("copy"), ()),
    "equals": (operator.eq, (ITEMS,)),
    "clear": (_method("clear"), ()),
}
SET: Operations = {
    "add": (_method("add"), (MEMBERS,)),
    "discard": (_method("discard"), (MEMBERS,)),
    "remove": (_method("remove"), (MEMBERS,)),
    "contains": (operator.contains, (MEMBERS,)),
    "len": (len, ()),
    "iterate": (set, ()),
    **{
        name: (_method(name), (MANY,))
        for kind in ("intersection", "difference", "symmetric_difference")
        for name in (kind, f"{kind}_update")
    },
    **{name: (_method(name), (MANY,)) for name in ("union", "update")},
    **{name: (_method(name), (MANY,)) for name in ("isdisjoint", "issubset", "issuperset")},
    **{
        f"{name} in both orders": (_both(getattr(operator, name)), (st.sets(MEMBERS),))
        for name in ("and_", "or_", "sub", "xor")
    },
    **{
        one.__name__: (one, (st.sets(MEMBERS),))
        for one in (operator.eq, operator.le, operator.lt, operator.ge, operator.gt)
    },
    "update with": (_update, (st.sets(MEMBERS),)),
    "copy": (_method("copy"), ()),
    "clear": (_method("clear"), ()),
}
DEQUE: Operations = {
    **{name: (_method(name), (VALUES,)) for name in ("append", "appendleft", "remove", "count")},
    **{name: (_method(name), ()) for name in ("pop", "popleft", "reverse", "copy", "clear")},
    **{name: (_method(name), (ITEMS,)) for name in ("extend", "extendleft")},
    "set": (_set, (INDICES, VALUES)),
    "get item": (operator.getitem, (INDICES,)),
    "delete": (_delete, (INDICES,)),
    "insert": (_method("insert"), (INDICES, VALUES)),
    "rotate": (_method("rotate"), (INDICES,)),
    "index": (_method("index"), (VALUES,)),
    "contains": (operator.contains, (VALUES,)),
    "len": (len, ()),
    "iterate": (_list, ()),
    "reversed": (_reversed, ()),
    "add in place": (_extend, (ITEMS,)),
    "inside": (_inner, (INDICES, VALUES)),
}
KINDS: dict[str, tuple[Callable[[], Any], Operations]] = {
    "dict": (dict, DICT),
    "list": (list, LIST),
    "set": (set, SET),
    "deque": (deque, DEQUE),
    "deque of at most 3": (lambda: deque[object](maxlen=3), DEQUE),
}


def outcome(
    container: Any, operations: Operations, name: str, arguments: tuple[Any, ...]
) -> object:
    """What an operation returns or raises."""
    try:
        return shown(operations[name][0](container, *arguments))
    except Exception as error:
        # What the builtin does not raise is a difference, whatever it is.
        return type(error).__name__


class Here:
    """The test's own process."""

    def __init__(self, container: Any, operations: Operations) -> None:
        self._container, self._operations = container, operations

    def do(self, name: str, arguments: tuple[Any, ...]) -> object:
        return outcome(self._container, self._operations, name, arguments)

    def see(self) -> object:
        return shown(self._container)


class There:
    """A forked process, which does what the pipe says."""

    def __init__(self, here: Here, others: list[There]) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                for other in (*others, self):
                    other._pipe.close()
                self._serve(here, theirs)
            finally:
                os._exit(0)
        theirs.close()

    def _serve(self, here: Here, pipe: Connection) -> None:
        while True:
            asked = pipe.recv()  # Ends the process when the other end is closed.
            pipe.send(here.see() if asked is None else here.do(*asked))

    def _ask(self, asked: object) -> object:
        self._pipe.send(asked)
        assert self._pipe.poll(PATIENCE_S), "a process does not answer"
        return self._pipe.recv()

    def do(self, name: str, arguments: tuple[Any, ...]) -> object:
        return self._ask((name, arguments))

    def see(self) -> object:
        return self._ask(None)

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        self._pipe.close()
        os.waitpid(self.process, 0)


class Model(RuleBasedStateMachine):
    """A builtin container, and a shared one that is used by this process and by `others` more."""

    def __init__(self, kind: str, others: int) -> None:
        super().__init__()
        new, self._operations = KINDS[kind]
        self._model = new()
        self._heap = share.Heap(max_size=1 << 26)
        self._here = Here(self._heap.share(new()), self._operations)
        self._others: list[There] = []
        for _ in range(others):
            self._fork()

    def _fork(self) -> None:
        self._others.append(There(self._here, self._others))

    @initialize(data=st.data())
    def begin_with_something(self, data: st.DataObject) -> None:
        """Most operations do little to what is empty."""
        self._do(data, "update" if "update" in self._operations else "extend")

    @rule(data=st.data())
    def do(self, data: st.DataObject) -> None:
        """Do the same to both."""
        self._do(data, data.draw(st.sampled_from(sorted(self._operations))))

    def _do(self, data: st.DataObject, name: str) -> None:
        arguments = data.draw(st.tuples(*self._operations[name][1]))
        actor = data.draw(st.sampled_from([self._here, *self._others]))
        # Copies: what the builtin then contains must not be changed by the shared one.
        expected = outcome(self._model, self._operations, name, copy.deepcopy(arguments))
        assert actor.do(name, arguments) == expected
        self._all_see_the_same()

    @rule()
    def collect(self) -> None:
        """Nothing that can be reached is garbage."""
        assert self._heap.gc() is not None
        self._all_see_the_same()

    @precondition(lambda self: self._others)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """One of the others is killed, and another takes its place."""
        victim = self._others.pop(data.draw(st.integers(0, len(self._others) - 1)))
        victim.kill()
        self._fork()
        self._all_see_the_same()

    def _all_see_the_same(self) -> None:
        expected = shown(self._model)
        for process in (self._here, *self._others):
            assert process.see() == expected

    def teardown(self) -> None:
        for other in self._others:
            other.kill()


@pytest.mark.parametrize("others", [0, 2], ids=["one process", "three processes"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_to_a_shared_container_does_what_it_does_to_a_builtin(
    kind: str, others: int
) -> None:
    class OfThisKind(Model):
        def __init__(self) -> None:
            super().__init__(kind, others)

    run_state_machine_as_test(
        OfThisKind,
        settings=settings(
            # Forks, and pipes, take most of the time.
            max_examples=10 if others else 30,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


@pytest.mark.parametrize("others", [0, 2], ids=["one process", "three processes"])
def test_a_set_pops_each_of_its_members_once(others: int) -> None:
    members = {*range(300), "a", (1, "b"), None}
    heap = share.Heap(max_size=1 << 26)
    here = Here(heap.share(set(members)), {**SET, "pop": (_method("pop"), ())})
    processes: list[Here | There] = [here]
    forked: list[There] = []
    for _ in range(others):
        forked.append(There(here, forked))
    processes += forked
    popped = [
        processes[number % len(processes)].do("pop", ()) for number in range(len(members) + 1)
    ]
    for other in forked:
        other.kill()
    assert popped[-1] == "KeyError"
    assert sorted(map(repr, popped[:-1])) == sorted(repr(shown(member)) for member in members)
