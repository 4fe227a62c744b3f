"""CPython's own tests of `threading`, run against what is shared.

Left out is what a test's place says: what needs a lock of `threading`, or names that are private.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportMissingTypeStubs=false

from collections.abc import Callable
from typing import Any

from test import lock_tests  # pyright: ignore[reportMissingImports]

from ungil import share

HEAP = share.Heap(max_size=1 << 26)


def made(make: Callable[..., object]) -> Any:
    """What the tests call to make what they test."""
    return staticmethod(lambda *args, **named: HEAP.share(make(*args, **named)))


class TestLock(lock_tests.LockTests):
    locktype = made(share.Lock)
    # A fork makes nothing free: the parent has it.
    test_at_fork_reinit = None
    # It says it in other words.
    test_repr = None
    test_locked_repr = None


class TestRLock(lock_tests.RLockTests):
    locktype = made(share.RLock)
    # Private methods of CPython's.
    test__is_owned = None
    test_release_save_unacquired = None
    test_recursion_count = None
    # It says it in other words.
    test_repr = None
    test_locked_repr = None
    test_repr_count = None


class TestEvent(lock_tests.EventTests):
    eventtype = made(share.Event)
    test_at_fork_reinit = None


class TestCondition(lock_tests.ConditionTests):
    condtype = made(share.Condition)
    # It makes a condition with a `threading.Lock`.
    test_acquire = None


class TestSemaphore(lock_tests.SemaphoreTests):
    semtype = made(share.Semaphore)


class TestBoundedSemaphore(lock_tests.BoundedSemaphoreTests):
    semtype = made(share.BoundedSemaphore)
    # A unit belongs to its thread; their threads end with it, and so give it up.
    test_acquire_contended = None
    test_multirelease = None
    test_try_acquire_contended = None
    # It says nothing of how many there were at first.
    test_repr = None


class TestBarrier(lock_tests.BarrierTests):
    barriertype = made(lambda parties, **_timeout: share.Barrier(parties))
    # A shared barrier has neither an action nor a timeout: both are given to wait().
    test_action = None
    test_default_timeout = None
