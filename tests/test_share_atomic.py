"""`with heap.atomic():`: all of it or nothing, whoever looks and whoever dies."""

import os
import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from forked import in_child
from hypothesis import given, settings
from hypothesis import strategies as st

from ungil import share

SIZE = 1 << 26


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=SIZE)


def dicts(heap: share.Heap, *contents: Mapping[str, object]) -> list[share.dict[Any, Any]]:
    made: list[share.dict[Any, Any]] = []
    for content in contents:
        shared: share.dict[Any, Any] = heap.share(dict(content))
        assert isinstance(shared, share.dict)
        made.append(shared)
    return made


class Undo(Exception):
    """What a test raises to undo a transaction."""


@contextmanager
def undone(heap: share.Heap) -> Generator[None]:
    """Undoes what its block does, by an exception."""
    with suppress(Undo), heap.atomic():
        yield
        raise Undo


def test_a_transaction_of_another_heap_is_refused_in_one(heap: share.Heap) -> None:
    other = share.Heap(max_size=1 << 20)
    with heap.atomic():
        with pytest.raises(RuntimeError, match="in a transaction of another heap"), other.atomic():
            pass
        # What is no transaction goes on.
        other.root["n"] = 1
    with other.atomic():
        other.root["n"] = 2
    assert other.root["n"] == 2


def test_an_exception_undoes_everything_and_goes_on(heap: share.Heap) -> None:
    one, other = dicts(heap, {"n": 1}, {"n": 10})
    with undone(heap):
        one["n"] = 2
        other["n"] = [1, {"deep": other}]
        other["more"] = "text that is longer than a cell"
        del one["n"]
        assert "n" not in one
    assert (one.copy(), other.copy()) == ({"n": 1}, {"n": 10})
    with heap.atomic():
        one["n"] = 2
        other["n"] = [1]
    assert one["n"] == 2
    assert repr(other["n"]) == "share.list([1])"


def test_one_inside_of_another_can_fail_alone(heap: share.Heap) -> None:
    (one,) = dicts(heap, {})
    with heap.atomic():
        one["outer"] = 1
        with undone(heap):
            one["inner"] = 1
            one["outer"] = 2
        with heap.atomic():
            one["second"] = 1
    assert one.copy() == {"outer": 1, "second": 1}
    with undone(heap), heap.atomic():
        one["third"] = 1
    assert one.copy() == {"outer": 1, "second": 1}


def test_what_was_made_in_a_transaction_that_failed_says_so(heap: share.Heap) -> None:
    (one,) = dicts(heap, {})
    made: list[share.list[Any]] = []
    with undone(heap):
        one["x"] = [1]
        found: share.list[Any] = one["x"]
        assert isinstance(found, share.list)
        made.append(found)
    with pytest.raises(ReferenceError, match="no longer exists"):
        made[0].append(1)
    with pytest.raises(ReferenceError, match="no longer exists"):
        one["x"] = made[0][0]
    # Nothing else comes to be in its place.
    others = [heap.share([number]) for number in range(100)]
    with pytest.raises(ReferenceError, match="no longer exists"):
        len(made[0])
    assert all(made[0] is not other for other in others)


def test_a_process_that_is_killed_in_a_transaction_has_not_begun_it(heap: share.Heap) -> None:
    one, other = dicts(heap, {"n": 0}, {"n": 0})
    ready, tell = os.pipe()

    def work() -> None:
        with heap.atomic():
            one["n"] = 1
            other["made"] = [1, 2]
            os.write(tell, b"!")
            signal.pause()

    number = in_child(work)
    assert os.read(ready, 1) == b"!"
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    assert one["n"] == 0
    assert other.copy() == {"n": 0}
    with heap.atomic():
        one["n"] = 5
    assert one["n"] == 5
    heap.gc()


def test_accounts_always_have_the_same_sum_for_those_who_look_in_a_transaction(
    heap: share.Heap,
) -> None:
    accounts = dicts(heap, *({"money": 100} for _ in range(4)))

    def money(account: share.dict[Any, Any]) -> int:
        found = account["money"]
        assert isinstance(found, int)
        return found

    def transfer(seed: int) -> None:
        step = seed
        while True:
            step = step * 1_103_515_245 + 12_345 & 0x7FFF_FFFF
            giver, taker = accounts[step >> 8 & 3], accounts[step >> 12 & 3]
            amount = step >> 16 & 15
            try:
                with heap.atomic():
                    taker.incr("money", amount)
                    giver["money"] = money(giver) - amount
                    if money(giver) < 0:
                        raise Undo
            except Undo:
                continue

    ready, tell = os.pipe()

    def read() -> None:
        for _ in range(400):
            with heap.atomic():
                assert sum(map(money, accounts)) == 400
        os.write(tell, b"!")

    for _ in range(3):
        children = [in_child(lambda seed=seed: transfer(seed)) for seed in (1, 2)]
        reader = in_child(read)
        assert os.read(ready, 1) == b"!"
        for number in children:
            os.kill(number, signal.SIGKILL)
            assert os.waitpid(number, 0)[1] == signal.SIGKILL
        assert os.waitpid(reader, 0)[1] == 0
        assert sum(map(money, accounts)) == 400
        assert all(money(account) >= 0 for account in accounts)
    heap.gc()


def test_others_wait_for_what_a_transaction_has_changed_and_read_what_it_has_read(
    heap: share.Heap,
) -> None:
    read, changed = dicts(heap, {"n": 1}, {"n": 1})
    seen: list[object] = []
    first = threading.Event()

    def look() -> None:
        seen.append(read["n"])
        first.set()
        seen.append(changed["n"])

    with heap.atomic():
        assert read["n"] == 1
        changed["n"] = 2
        other = threading.Thread(target=look)
        other.start()
        first.wait()
        changed["n"] = 3
    other.join()
    assert seen == [1, 3]


def test_threads_lose_no_change_of_what_they_read_first(heap: share.Heap) -> None:
    (one,) = dicts(heap, {"n": 0})

    def count() -> None:
        for _ in range(300):
            with heap.atomic():
                found = one["n"]
                assert isinstance(found, int)
                one["n"] = found + 1
            one.incr("n")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one["n"] == 2 * 4 * 300


def test_a_full_heap_undoes_the_transaction_and_stays_usable() -> None:
    heap = share.Heap(max_size=1 << 20)
    root: share.dict[Any, Any] = heap.root
    root["before"] = 1

    def fill() -> None:
        for number in range(1_000):
            root[number] = b"x" * 10_000

    with pytest.raises(MemoryError, match="max_size"), heap.atomic():
        fill()
    assert len(root) == 1
    with heap.atomic():
        root["again"] = b"x" * 10_000
    assert len(root) == 2


def test_ctrl_c_undoes_a_transaction_and_ends_the_wait_for_one(heap: share.Heap) -> None:
    (one,) = dicts(heap, {"n": 0})

    def change_and_stop() -> None:
        one["n"] = 1
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), heap.atomic():
        change_and_stop()
    assert one["n"] == 0
    ready, tell = os.pipe()
    end, finish = os.pipe()

    def hold() -> None:
        with heap.atomic():
            os.write(tell, b"!")
            os.read(end, 1)

    number = in_child(hold)
    assert os.read(ready, 1) == b"!"
    interrupt = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

    def wait() -> None:
        interrupt.start()
        with heap.atomic():
            pytest.fail("it is another's")

    with pytest.raises(KeyboardInterrupt):
        wait()
    interrupt.join()
    os.write(finish, b"!")
    assert os.waitpid(number, 0)[1] == 0
    with heap.atomic():
        one["n"] = 2


def test_a_thread_that_ends_in_a_transaction_has_not_begun_it(heap: share.Heap) -> None:
    (one,) = dicts(heap, {"n": 0})

    def work() -> None:
        heap.atomic().__enter__()
        one["n"] = 1

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert one["n"] == 0
    with heap.atomic():
        one["n"] = 2


def test_transactions_that_do_not_end_in_order_are_undone(heap: share.Heap) -> None:
    (one,) = dicts(heap, {"n": 0})
    outer, inner = heap.atomic(), heap.atomic()
    outer.__enter__()
    inner.__enter__()
    one["n"] = 1
    with pytest.raises(RuntimeError, match="both are undone"):
        outer.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="in the thread in which it began"):
        inner.__exit__(None, None, None)
    assert one["n"] == 0


def test_a_collection_in_a_transaction_is_refused(heap: share.Heap) -> None:
    with pytest.raises(ValueError, match="inside a transaction"), heap.atomic():
        heap.gc()
    assert heap.gc() is not None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_child_that_is_forked_in_a_transaction_cannot_use_the_heap(heap: share.Heap) -> None:
    (one,) = dicts(heap, {"n": 0})

    def work() -> None:
        with pytest.raises(ValueError, match="when it was forked"):
            one["n"] = 5
        with pytest.raises(ValueError, match="it is the parent's to finish"):
            transaction.__exit__(None, None, None)

    transaction = heap.atomic()
    with transaction:
        one["n"] = 1
        number = in_child(work)
        assert os.waitpid(number, 0)[1] == 0
    assert one["n"] == 1


Change = tuple[str, int, int]
# Changes and transactions of such; "stop" undoes the innermost one.
Program = list["Change | Program | str"]


class Stop(Exception):
    """Ends the innermost transaction of a random program."""


CHANGES = st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers())
PROGRAMS: st.SearchStrategy[Program] = st.recursive(
    st.lists(CHANGES, max_size=4),
    lambda inner: st.lists(st.one_of(inner, CHANGES, st.just("stop")), max_size=5),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS)
def test_random_transactions_do_what_copies_do(program: Program) -> None:
    heap = HEAPS[0]
    shared = dict(zip("abc", dicts(heap, {}, {}, {}), strict=True))
    model: dict[str, dict[object, object]] = {name: {} for name in "abc"}

    def run(program: Program) -> None:
        saved = {name: content.copy() for name, content in model.items()}
        try:
            with heap.atomic():
                for step in program:
                    if isinstance(step, str):
                        raise Stop
                    if isinstance(step, list):
                        run(step)
                        continue
                    name, key, value = step
                    if value % 3 == 0 and key in model[name]:
                        del shared[name][key], model[name][key]
                    else:
                        shared[name][key] = [value] if value % 3 == 1 else value
                        model[name][key] = value
        except Stop:
            model.update(saved)

    run(program)
    for name, content in model.items():
        found: dict[Any, object] = {
            key: value[0] if isinstance(value, share.list) else value
            for key, value in shared[name].copy().items()
        }
        assert found == content


HEAPS = [share.Heap(max_size=SIZE)]


@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes elsewhere"])
def test_readers_do_not_wait_for_a_transaction_that_is_stopped(
    heap: share.Heap, writes: bool
) -> None:
    heap.root["a"] = {"x": 1}
    heap.root["b"] = {"y": 2, "z": [3, (4, {"deep": 5})]}

    def stop_in_a_transaction() -> None:
        with heap.atomic():
            assert heap.root["a"]["x"] == 1
            if writes:
                heap.root["a"]["x"] = 7
            os.kill(os.getpid(), signal.SIGSTOP)

    stopped = in_child(stop_in_a_transaction)
    try:
        assert os.WIFSTOPPED(os.waitpid(stopped, os.WUNTRACED)[1])
        assert heap.root["b"]["y"] == 2
        assert heap.root["b"]["z"][1][1]["deep"] == 5
        assert set(heap.root.copy()) == {"a", "b"}
        assert [key for key, _ in heap.root.items()] == ["a", "b"]
        if not writes:
            assert heap.root["a"]["x"] == 1
    finally:
        os.kill(stopped, signal.SIGKILL)
        os.waitpid(stopped, 0)
    assert heap.root["a"]["x"] == 1
    assert heap.root["b"] == {"y": 2, "z": [3, (4, {"deep": 5})]}
