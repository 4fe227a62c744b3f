"""CPython's own tests of multiprocessing.Manager, run against `share.Manager`.

Not of it: those of managers that a program registers types with, or reaches over a network.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportUnknownArgumentType=false

from __future__ import annotations

import multiprocessing
import sys
import unittest
from importlib import import_module
from typing import Any

from cpython_suites import expected_failures

from ungil import share

suites: Any = import_module("test._test_multiprocessing")

SHARED = "a plain container that is put in is shared: it is read back as a shared one"
ITERATION = "a dict may change while it is iterated over"
NO_SERVER = "it expects the error of a server"
# Not even tried: its callback fails in a thread, which prints a traceback while pytest formats one,
# and CPython 3.11 cannot do both at once (gh-106905).
NOT_SHARED = "it puts an exception into a shared list, which is refused"
NAMED = "it says its state in other words"
SLOW = "it waits for seconds"
PROXIES = "it wants proxies of multiprocessing's own classes"


class Forking:
    """Processes that the tests start are forked: other ones would have to import our classes."""

    _method: str | None

    @classmethod
    def setUpClass(cls) -> None:
        cls._method = multiprocessing.get_start_method(allow_none=True)
        multiprocessing.set_start_method("fork", force=True)

    @classmethod
    def tearDownClass(cls) -> None:
        multiprocessing.set_start_method(cls._method, force=True)


class Managed(Forking, suites.ManagerMixin):
    """What stands in for multiprocessing.Manager's objects in the tests."""

    manager: share.Manager

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.manager = share.Manager(max_size=1 << 28)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.manager.shutdown()
        super().tearDownClass()


def case(name: str, **omitted: str) -> type[unittest.TestCase]:
    """The tests of a class, for shared objects; `omitted` says of a test why it cannot pass."""
    base: Any = getattr(suites, name)
    untried = [test for test, reason in omitted.items() if reason in (SLOW, NOT_SHARED)]
    members = expected_failures(base, omitted) | dict.fromkeys(untried)
    return type(name, (base, Managed, unittest.TestCase), {"__module__": __name__, **members})


TestQueue = case("_TestQueue", test_timeout=SLOW, test_qsize=SLOW)
TestLock = case("_TestLock")
TestSemaphore = case("_TestSemaphore")
TestCondition = case("_TestCondition")
TestEvent = case("_TestEvent", test_repr=NAMED)
TestContainers = case("_TestContainers", test_dict_iter=ITERATION, test_dict_proxy_nested=SHARED)
TestBarrier = case(
    "_TestBarrier",
)
TestPool = case("_TestPool", test_make_pool=NO_SERVER, test_map_async_callbacks=NOT_SHARED)
TYPES = expected_failures(
    suites.TestSyncManagerTypes,
    # Since 3.14 they look at the classes.
    {**dict.fromkeys(["test_dict", "test_list", "test_set"], PROXIES), "test_set_init": NO_SERVER}
    if sys.version_info >= (3, 14)
    else {},
)
TestSyncManagerTypes = type(
    "TestSyncManagerTypes",
    (Forking, suites.TestSyncManagerTypes),
    {"__module__": __name__, "manager_class": share.Manager, **TYPES},
)
