"""Locks and everything else that threads and processes wait for, seen from Python."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from suite import PROGRAMS

from ungil import share


@pytest.fixture
def heap() -> share.Heap:
    return share.Heap(max_size=1 << 24)


def shared(heap: share.Heap, obj: object) -> Any:
    return heap.share(obj)


class Child:
    """A forked child that does `work`, says so, and then waits to be killed."""

    def __init__(self, work: Callable[[], object]) -> None:
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work()
                os.write(tell, b"!")
                while True:
                    signal.pause()
            finally:
                os._exit(1)
        os.close(tell)
        self.ready = ready

    def wait(self) -> "Child":
        """Wait until its work is done."""
        assert os.read(self.ready, 1) == b"!"
        return self

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert os.waitpid(self.pid, 0)[1] == signal.SIGKILL
        os.close(self.ready)


LOCKS = [share.Lock, share.RLock, share.Condition]


@pytest.mark.parametrize("make", LOCKS)
def test_a_lock_is_acquired_in_each_way_that_a_threads_lock_is(
    heap: share.Heap, make: Callable[[], object]
) -> None:
    lock = shared(heap, make())
    ways: list[Callable[[], bool]] = [
        lambda: lock.acquire(),
        lambda: lock.acquire(True),
        lambda: lock.acquire(False),
        lambda: lock.acquire(True, 1),
        lambda: lock.acquire(True, None),  # as of multiprocessing
        lambda: lock.acquire(True, timeout=1.5),
        lambda: lock.acquire(timeout=1, blocking=True),
    ]
    for acquire in ways:
        assert acquire() is True
        lock.release()
    with pytest.raises(TypeError):
        lock.acquire(1, 2, 3)
    with pytest.raises(TypeError):
        lock.acquire(unknown=1)
    with pytest.raises(ValueError, match="timeout"):
        lock.acquire(False, 1)
    with pytest.raises(RuntimeError):
        lock.release()


def test_a_lock_that_is_in_no_heap_says_so() -> None:
    for use in (lambda: share.Lock().acquire(), lambda: share.RLock().release()):
        with pytest.raises(RuntimeError, match="not in a heap yet"):
            use()


@pytest.mark.parametrize("make", LOCKS)
def test_the_lock_of_a_killed_holder_goes_to_the_next_who_is_told(
    heap: share.Heap, make: Callable[[], object]
) -> None:
    lock = shared(heap, make())
    holder = Child(lock.acquire).wait()
    assert not lock.acquire(timeout=0.01)
    assert not lock.acquire(blocking=False)
    holder.kill()
    assert lock.acquire()
    assert lock.owner_died
    lock.release()
    assert not lock.owner_died
    with lock:
        assert not lock.owner_died


@pytest.mark.parametrize("make", LOCKS)
def test_who_waits_proceeds_when_the_holder_is_killed(
    heap: share.Heap, make: Callable[[], object]
) -> None:
    lock = shared(heap, make())
    holder = Child(lock.acquire).wait()
    killer = threading.Thread(target=holder.kill)
    killer.start()
    with lock:
        assert lock.owner_died
    killer.join()


def test_a_dead_holder_that_had_entered_often_leaves_nothing_behind(heap: share.Heap) -> None:
    lock = shared(heap, share.RLock())
    Child(lambda: [lock.acquire() for _ in range(5)]).wait().kill()
    with lock:
        assert lock.owner_died
        with lock:
            pass
    assert not lock.locked()
    with pytest.raises(RuntimeError, match="this thread does not hold the lock"):
        lock.release()


def test_a_thread_that_ends_with_a_lock_has_died_with_it(heap: share.Heap) -> None:
    lock = shared(heap, share.Lock())
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    with lock:
        assert lock.owner_died


def test_two_processes_exclude_each_other(heap: share.Heap) -> None:
    heap.root["lock"] = share.Lock()
    heap.root["count"] = 0
    lock: Any = heap.root["lock"]
    assert isinstance(lock, share.Lock)
    assert heap.root["lock"] is lock

    def count() -> None:
        for _ in range(2_000):
            with lock:
                heap.root["count"] = int(str(heap.root["count"])) + 1

    child = Child(count)
    count()
    child.wait().kill()
    assert heap.root["count"] == 4_000


def test_units_of_a_dead_process_stay_taken_unless_they_are_bounded(heap: share.Heap) -> None:
    free = shared(heap, share.Semaphore(1))
    bounded = shared(heap, share.BoundedSemaphore(1))
    child = Child(lambda: (free.acquire(), bounded.acquire())).wait()
    assert not bounded.acquire(timeout=0.01)
    child.kill()
    assert not free.acquire(timeout=0.01)
    assert bounded.acquire()
    assert not bounded.acquire(blocking=False)
    bounded.release()
    with pytest.raises(ValueError, match="Semaphore released too many times"):
        bounded.release()
    with pytest.raises(ValueError, match="one or more"):
        free.release(0)


def test_an_event_stays_set_when_who_set_it_is_killed(heap: share.Heap) -> None:
    event = shared(heap, share.Event())
    child = Child(event.set)
    assert event.wait()
    child.wait().kill()
    assert event.is_set()
    event.clear()
    assert not event.wait(0.01)


def test_a_barrier_breaks_when_a_party_that_waits_is_killed(heap: share.Heap) -> None:
    barrier = shared(heap, share.Barrier(3))
    child = Child(barrier.wait)
    while barrier.n_waiting < 1:
        os.sched_yield()
    killer = threading.Thread(target=child.kill)
    killer.start()
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait()
    killer.join()
    assert barrier.broken
    barrier.reset()
    parties = [threading.Thread(target=barrier.wait) for _ in range(2)]
    for party in parties:
        party.start()
    done: list[str] = []
    barrier.wait(action=lambda: done.append("by somebody"))
    for party in parties:
        party.join()
    assert not barrier.broken


def test_the_last_party_of_a_barrier_acts_for_all(heap: share.Heap) -> None:
    barrier = shared(heap, share.Barrier(1))
    done: list[str] = []
    assert barrier.wait(action=lambda: done.append("acted")) == 0
    assert done == ["acted"]
    with pytest.raises(ZeroDivisionError):
        barrier.wait(action=lambda: 1 // 0)
    assert barrier.broken


def test_a_notification_goes_past_the_dead_to_one_who_lives(heap: share.Heap) -> None:
    condition = shared(heap, share.Condition())

    def wait(name: str) -> None:
        with condition:
            # Whoever has the lock and sees this knows that the other waits.
            heap.root[name] = True
            assert condition.wait()

    def is_waiting(name: str) -> bool:
        with condition:
            return name in heap.root

    first = Child(lambda: wait("first"))
    while not is_waiting("first"):
        os.sched_yield()
    second = threading.Thread(target=wait, args=("second",))
    second.start()
    while not is_waiting("second"):
        os.sched_yield()
    first.kill()
    with condition:
        condition.notify()
    second.join()


def test_conditions_share_a_lock_between_processes(heap: share.Heap) -> None:
    lock = shared(heap, share.Lock())
    filled, emptied = shared(heap, share.Condition(lock)), shared(heap, share.Condition(lock))
    heap.root["queue"] = []
    heap.root["at"] = 0
    queue: Any = heap.root["queue"]

    def produce() -> None:
        for number in range(200):
            with lock:
                emptied.wait_for(lambda: len(queue) - int(str(heap.root["at"])) < 3)
                queue.append(number)
                filled.notify()

    child = Child(produce)
    for number in range(200):
        with filled:
            assert filled.wait_for(lambda: len(queue) > int(str(heap.root["at"])))
            assert queue[heap.root["at"]] == number
            heap.root.incr("at")
            emptied.notify()
    child.wait().kill()
    with lock:
        assert not filled.wait_for(lambda: False, timeout=0.01)


def test_a_condition_is_made_with_its_lock_and_needs_it(heap: share.Heap) -> None:
    lock = share.Lock()
    condition, lock = shared(heap, [share.Condition(lock), lock])[:]
    with pytest.raises(RuntimeError, match="this thread does not hold the lock"):
        condition.wait()
    with pytest.raises(RuntimeError, match="this thread does not hold the lock"):
        condition.notify()
    with lock:
        assert not condition.acquire(blocking=False)
        condition.notify()
    with pytest.raises(TypeError):
        share.Condition(share.Event())  # pyright: ignore[reportArgumentType]


def test_what_is_in_no_heap_says_so() -> None:
    for obj in (share.Lock(), share.Condition(), share.Semaphore(), share.Barrier(2)):
        assert "unshared" in repr(obj)
        with pytest.raises(RuntimeError, match=r"not in a heap yet: use the one that heap\.share"):
            getattr(obj, "acquire", getattr(obj, "abort", None))()  # pyright: ignore
    with pytest.raises(RuntimeError, match="not in a heap yet"):
        share.Event().set()
    with pytest.raises(ValueError, match="1 to 4095 parties, not 0"):
        share.Barrier(0)
    with pytest.raises(ValueError, match="at most 65536 units"):
        share.BoundedSemaphore(1 << 20)


def test_ctrl_c_ends_every_wait() -> None:
    with subprocess.Popen(
        [sys.executable, PROGRAMS / "share_interrupted.py"], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        for line in program.stdout:
            if line == "waits\n":
                program.send_signal(signal.SIGINT)
                assert next(program.stdout) == "interrupted\n"
            else:
                assert line == "done\n"
    assert program.returncode == 0


@pytest.mark.parametrize("make", [dict[str, int], list[int], lambda: Slot(1)])
def test_every_shared_object_is_a_monitor(heap: share.Heap, make: Callable[[], object]) -> None:
    obj = shared(heap, make())
    with obj as entered, obj:
        assert entered is obj
    holder = Child(obj.__enter__).wait()
    # It keeps out who enters, and nobody else.
    assert bool(repr(obj))
    killer = threading.Thread(target=holder.kill)
    killer.start()
    with obj:
        assert share.owner_died(obj)
    killer.join()
    assert not share.owner_died(obj)
    with pytest.raises(RuntimeError, match="this thread does not hold the lock"):
        obj.__exit__(None, None, None)


@share.struct
class Slot:
    """A struct to enter."""

    value: int


def test_only_what_is_shared_is_a_monitor() -> None:
    with pytest.raises(RuntimeError, match="this Slot is not in a heap"), Slot(1):  # pyright: ignore
        pass
    with pytest.raises(TypeError, match="an object of type int is not shared"):
        share.owner_died(3)
