"""CPython's own test_deque, run against shared deques."""

from collections import deque

from cpython_suites import shared_in_own_heap, suite

from ungil import share

Deque = shared_in_own_heap(deque, share.deque)
MODULE = "test.test_deque"
NAMES = {"deque": Deque}

TestBasic = suite(MODULE, "TestBasic", names=NAMES, omitted={})
TestVariousIteratorArgs = suite(MODULE, "TestVariousIteratorArgs", names=NAMES, omitted={})
TestSubclass = suite(MODULE, "TestSubclass", names=NAMES, omitted={})
TestSequence = suite(
    MODULE, "TestSequence", names=NAMES, attributes={"type2test": Deque}, omitted={}
)
