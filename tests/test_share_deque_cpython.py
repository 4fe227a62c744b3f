"""CPython's own test_deque, run against shared deques.

Not of it: the classes about subclasses.
"""

import sys
from collections import deque

from cpython_suites import shared_in_own_heap, suite

from ungil import share

Deque = shared_in_own_heap(deque, share.deque)

ONE_MOMENT = "iterating goes through the items of one moment, and is not disturbed by changes"
NOT_SHARED = "its items are objects of a class of the test's own, which cannot be shared"
COPIED = "items are copied: they are equal, not identical, and no changes of an original are seen"
HANDLE = "a pickle is a handle of the same deque, not a copy of its items"
NAMED = "the representation begins with share.deque"

TestBasic = suite(
    "test.test_deque",
    "TestBasic",
    names={"deque": Deque},
    # A hundred times Python's garbage collector, of which a shared deque knows nothing.
    attributes={"test_gc_doesnt_blowup": None},
    omitted={
        "test_basics": "only a heap makes shared deques, so they have no __init__",
        "test_container_iterator": NOT_SHARED,
        "test_contains": NOT_SHARED,
        "test_contains_count_index_stop_crashes"
        if sys.version_info >= (3, 13)
        else "test_contains_count_stop_crashes": NOT_SHARED,
        "test_copy": COPIED,
        "test_count": NOT_SHARED,
        "test_deepcopy": COPIED,
        "test_index": NOT_SHARED,
        "test_iterator_pickle": ONE_MOMENT,
        "test_maxlen": NAMED,
        "test_pickle": HANDLE,
        "test_pickle_recursive": HANDLE,
        "test_remove": NOT_SHARED,
        "test_repr": NAMED,
        "test_reversed_new": "it walks backwards with an iterator of a list, which has no class",
        "test_sizeof": "the items are not in the process's own memory",
    },
)

TestVariousIteratorArgs = suite(
    "test.test_deque",
    "TestVariousIteratorArgs",
    names={"deque": Deque},
    omitted={
        "test_iter_with_altered_data": ONE_MOMENT,
        "test_runtime_error_on_empty_deque": ONE_MOMENT,
    },
)

TestSequence = suite(
    "test.test_deque",
    "TestSequence",
    attributes={"type2test": Deque},
    omitted={
        "test_contains_fake": NOT_SHARED,
        "test_contains_order": NOT_SHARED,
        "test_count": NOT_SHARED,
        "test_index": NOT_SHARED,
        "test_pickle": HANDLE,
    },
)
