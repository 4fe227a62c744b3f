"""Classes whose instances are shared."""

from __future__ import annotations

import copy
import gc
import os
import signal
import weakref
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, Literal, cast

import pytest
from forked import ended, in_child

from ungil import share


@share.struct
class Account:
    """What the tests share."""

    owner: str
    balance: int = 0
    limit: float | None = None
    history: list[object] = field(default_factory=list[object])

    kind = "account"

    def deposit(self, amount: int) -> int:
        return share.incr(self, "balance", amount)

    @property
    def is_overdrawn(self) -> bool:
        return self.balance < 0

    @is_overdrawn.setter
    def is_overdrawn(self, value: bool) -> None:
        self.balance = -1 if value else 0


@share.struct
class Savings(Account):
    """An heir with a field and a method of its own."""

    rate: float = 0.5

    def deposit(self, amount: int) -> int:
        return super().deposit(amount * 2)


@share.struct
class Node:
    """A class that names itself."""

    value: Any
    next: Node | None = None


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 26)


def shared(heap: share.Heap, obj: object) -> Any:
    return heap.share(obj)


def test_a_struct_is_made_and_shown_and_compared_like_a_dataclass(heap: share.Heap) -> None:
    local = Account("ann", balance=3)
    assert repr(local) == "Account(owner='ann', balance=3, limit=None, history=[])"
    assert local == Account("ann", 3)
    assert local != Account("ann", 4)
    assert replace(local, owner="bob").owner == "bob"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'owner'"):
        Account()  # pyright: ignore[reportCallIssue]
    ann = shared(heap, local)
    assert repr(ann) == "Account(owner='ann', balance=3, limit=None, history=share.list([]))"
    assert replace(ann, history=[]) == local


def test_what_a_heap_returns_is_of_the_class_and_shared(heap: share.Heap) -> None:
    local = Account("ann", history=[1])
    heap.root["ann"] = local
    ann = heap.root["ann"]
    assert type(ann) is Account
    assert heap.root["ann"] is ann
    assert isinstance(ann.history, share.list)
    ann.balance = 7
    assert local.balance == 0
    assert ended(in_child(lambda: ann.deposit(5))) == 0
    assert ann.balance == 12
    assert ann.kind == "account"
    ann.is_overdrawn = True
    assert ann.is_overdrawn
    assert ann.balance == -1


@share.struct
class Visits:
    name: str
    hits: int = field(init=False, default=0)
    limit: int = 9


@share.struct
class Own:
    """With an `__init__` of its own, which leaves a field as it is."""

    name: str
    hits: int = 5

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("class_", [Visits, Own])
def test_a_field_that_is_given_no_value_has_its_default(
    heap: share.Heap, class_: Any, is_shared: bool
) -> None:
    local = class_("n")
    hits = 0 if class_ is Visits else 5
    assert local == class_("n")
    assert f"hits={hits}" in repr(local)
    made = shared(heap, local) if is_shared else local
    assert made.hits == hits
    assert share.incr(made, "hits") == made.hits == hits + 1
    assert copy.copy(made).hits == hits + 1


def test_a_default_of_a_wrong_type_is_named_with_its_field() -> None:
    @share.struct
    class Wrong:
        hits: int = field(init=False, default=cast(int, "none"))
        rest: int = field(init=False)

    with pytest.raises(TypeError, match=r"Wrong\.hits must be int, not str"):
        _ = Wrong().hits
    with pytest.raises(AttributeError, match=r"Wrong\.rest has no value"):
        _ = Wrong().rest


def test_an_heir_has_the_fields_of_both_and_super_works(heap: share.Heap) -> None:
    for savings in (Savings("ann", 1, rate=2.5), shared(heap, Savings("ann", 1, rate=2.5))):
        assert savings.deposit(4) == 9
        assert (savings.owner, savings.balance, savings.rate) == ("ann", 9, 2.5)
        assert isinstance(savings, Account)
        savings.is_overdrawn = True
        assert savings.balance == -1


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_wrong_type_is_named_with_its_field(heap: share.Heap, is_shared: bool) -> None:
    ann: Any = Account("ann")
    if is_shared:
        ann = heap.share(cast(Account, ann))
    with pytest.raises(TypeError, match=r"^Account\.balance must be int, not str$"):
        ann.balance = "much"
    with pytest.raises(TypeError, match=r"^Account\.limit must be float \| None, not bytes$"):
        ann.limit = b""
    ann.limit = 3
    ann.limit = None
    ann.balance = True
    ann.balance = 2**80
    assert share.incr(ann, "balance") == 2**80 + 1
    with pytest.raises(TypeError, match=r"^Account\.balance must be int, not float$"):
        share.incr(ann, "balance", 0.5)
    with pytest.raises(AttributeError, match="Account has no field 'blance'"):
        share.incr(ann, "blance")
    with pytest.raises(TypeError):
        share.incr(ann, "owner", "x")


@pytest.mark.parametrize("is_shared", [False, True])
def test_there_are_no_attributes_beside_the_fields(heap: share.Heap, is_shared: bool) -> None:
    ann: Any = Account("ann")
    if is_shared:
        ann = heap.share(cast(Account, ann))
    with pytest.raises(AttributeError, match="'Account' object has no attribute 'blance'"):
        ann.blance = 3
    with pytest.raises(AttributeError, match=r"Account\.balance cannot be deleted"):
        del ann.balance


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_field_is_compared_and_set_in_one_step(heap: share.Heap, is_shared: bool) -> None:
    ann: Any = Account("ann", 1)
    if is_shared:
        ann = heap.share(cast(Account, ann))
    assert share.cas(ann, "balance", 1.0, 2)
    assert not share.cas(ann, "balance", 1, 3)
    assert ann.balance == 2
    with pytest.raises(TypeError, match=r"Account\.balance must be int, not str"):
        share.cas(ann, "balance", 2, "3")


def test_structs_refer_to_themselves_and_to_each_other(heap: share.Heap) -> None:
    first, second = Node([1]), Node("second")
    first.next = second
    second.next = first
    second.value = (first, {"first": first})
    first = shared(heap, first)
    assert first.next.next is first
    assert first.next.value[0] is first
    assert first.next.value[1]["first"] is first
    assert first.value[:] == [1]
    assert shared(heap, first) is first


def test_what_cannot_be_shared_is_named_with_its_place(heap: share.Heap) -> None:
    with pytest.raises(
        TypeError, match=r"^\['n'\]\.next\.value\[1\] cannot be shared: it is of type object; "
    ):
        heap.root["d"] = {"n": Node(1, Node([0, object()]))}
    node = shared(heap, Node(1))
    with pytest.raises(TypeError, match="the object cannot be shared: it is of type object; "):
        node.value = object()
    other = shared(share.Heap(max_size=1 << 20), Node(1))
    with pytest.raises(TypeError, match="is in another heap"):
        node.next = other


def test_a_local_struct_that_refers_to_itself_is_collected() -> None:
    node = Node(1)
    node.next = node
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is None


def test_an_instance_that_a_killed_process_changed_is_whole(heap: share.Heap) -> None:
    ann = shared(heap, Account("ann"))
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            ann.owner = f"ann with a long name {ann.deposit(1)}"
            ann.history = [ann.balance]
            if ann.balance == 1_000:
                os.write(tell, b"!")
    assert os.read(ready, 1) == b"!"
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    number = int(ann.owner.rpartition(" ")[2])
    assert 0 <= ann.balance - number <= 1
    assert number - 1 <= cast(int, ann.history[0]) <= number
    ann.owner = "bob"
    assert heap.gc() is not None
    assert ann.owner == "bob"


def declare(module: str, source: str) -> Any:
    """Declares the class that `source` makes, as if it were in `module`."""
    names: dict[str, Any] = {"share": share, "__name__": module}
    exec(compile(f"@share.struct\n{source}", module, "exec", dont_inherit=True), names)
    return names["Thing"]


def test_a_class_is_found_by_its_name_and_fields_and_never_imported(heap: share.Heap) -> None:
    def put() -> None:
        things = {
            "same": declare("shop", "class Thing:\n    size: int")(1),
            "other": declare("shop", "class Thing:\n    size: int\n    name: str = ''")(2),
            "unknown": declare("antigravity", "class Thing:\n    size: int")(3),
            "main": declare("__mp_main__", "class Thing:\n    size: int")(4),
        }
        heap.root["things"] = things

    assert ended(in_child(put)) == 0
    thing = declare("shop", "class Thing:\n    size: int")
    main = declare("__main__", "class Thing:\n    size: int")
    found: Any = heap.root["things"]
    assert type(found["same"]) is thing
    assert found["same"].size == 1
    assert type(found["main"]) is main
    with pytest.raises(
        TypeError,
        match=r"is a Thing\(size: int, name: str\), but this process has declared"
        r" Thing\(size: int\)$",
    ):
        found["other"]
    with pytest.raises(
        TypeError,
        match=r"is a Thing\(size: int\), which this process has not declared: import antigravity$",
    ):
        found["unknown"]
    assert found["same"].size == 1


def test_a_class_can_be_declared_again(heap: share.Heap) -> None:
    source = "class Thing:\n    size: int"
    old = declare("reloaded", source)
    kept = heap.root["kept"] = old(1)
    del kept
    new = declare("reloaded", source)
    found: Any = heap.root["kept"]
    assert type(found) is new


def test_what_no_struct_can_be_is_refused_with_a_sentence() -> None:
    class Open:
        pass

    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: type("Bad", (Open,), {"__annotations__": {"x": int}}),
            "Bad would have attributes that are not shared, because of its base Open",
        ),
        (
            lambda: type("Bad", (), {"__annotations__": {"x": "Nothing"}}),
            "Bad has an annotation that cannot be evaluated yet: name 'Nothing' is not defined",
        ),
        (lambda: type("Bad", (), {"__annotations__": {"x": 3}}), "Bad"),
        (
            lambda: type("Bad", (), {"__slots__": ("x",), "__annotations__": {"x": int}}),
            "Bad has __slots__",
        ),
        (lambda: type("Bad", (Savings, Node), {}), "Bad inherits from more than one struct"),
    ]
    for make, sentence in cases:
        with pytest.raises(TypeError, match=sentence):
            share.struct(cast(Any, make()))
    heir = type("Heir", (Node,), {})
    with pytest.raises(TypeError, match=r"Heir is not declared by @share\.struct itself"):
        heir(1)


def test_an_annotation_says_what_fits() -> None:
    @share.struct(kw_only=True, order=True)
    class Wide:
        mode: Literal["r", "w"] = "r"
        real: float = 0
        values: share.list[Any] | None = None
        by_name: dict[str, int] = field(default_factory=dict[str, int])
        lock: share.Lock = field(default_factory=share.Lock)

    wide: Any = Wide(real=1)
    wide.values = [1]
    assert wide.real == 1
    with pytest.raises(TypeError, match=r"must be list \| None, not dict"):
        wide.values = {}
    with pytest.raises(TypeError, match=r"Wide\.mode must be str, not int"):
        wide.mode = 1
    with pytest.raises(TypeError, match=r"lock must be ungil\.share\._sync\.Lock, not int"):
        wide.lock = 1
    heap = share.Heap(max_size=1 << 20)
    wide = heap.share(cast(Wide, wide))
    with wide.lock:
        wide.by_name["a"] = 1
    assert wide.by_name["a"] == 1


def test_a_frozen_struct_stays_as_it_is(heap: share.Heap) -> None:
    @share.struct(frozen=True)
    class Point:
        x: int
        y: int

    points: list[Any] = [Point(1, 2), heap.share(Point(1, 2))]
    for point in points:
        assert (point.x, point.y) == (1, 2)
        with pytest.raises(AttributeError):
            point.x = 3


def test_a_full_heap_raises_memory_error_and_leaves_the_field(heap: share.Heap) -> None:
    small = share.Heap(max_size=1 << 20)
    ann = shared(small, Account("ann"))
    with pytest.raises(MemoryError, match="max_size"):
        ann.owner = "a" * (1 << 21)
    assert ann.owner == "ann"
