"""CPython's own test_set, run against shared sets.

Not of it: the classes about frozensets and about subclasses; TestBasicOpsTriple, whose members
cannot be shared; and those with Mutating in their names, whose members have an `__eq__` that
changes the set: no member of a shared set has an `__eq__` of its own.
"""

import sys
import unittest

from cpython_suites import shared_in_own_heap, suite

from ungil import share

Set = shared_in_own_heap(set, share.set)

ONE_MOMENT = "iterating goes through the members of one moment, and is not disturbed by changes"
NOT_SHARED = "its members are objects of a class of the test's own, which cannot be shared"
NO_INIT = "only a heap makes shared sets, so they have no __init__"
COPIED = "members are copied both ways: they are equal, not identical"
NAMED = "the representation begins with share.set"
WORDS = "CPython 3.14 says more in that error"
IS_3_14 = sys.version_info >= (3, 14)
# Tests that are new in 3.14, or have changed there.
OF_3_14 = {"test_hash_collision_remove_add": NOT_SHARED, "test_unhashable_element": WORDS}
BUGS_OF_3_14 = {"test_hash_collision_concurrent_add": NOT_SHARED}


def of_module(
    name: str, attributes: dict[str, object] | None = None, **omitted: str
) -> type[unittest.TestCase]:
    return suite(
        "test.test_set",
        name,
        names={"set": Set},
        attributes=attributes,
        displays=(set,),
        omitted=omitted,
    )


TestSet = of_module(
    "TestSet",
    {"thetype": Set, "basetype": set},
    test_badcmp=NOT_SHARED,
    test_container_iterator=NOT_SHARED,
    test_cyclical_repr=NOT_SHARED,
    test_deepcopy=NOT_SHARED,
    test_do_not_rehash_dict_keys=NOT_SHARED,
    test_free_after_iterating="it needs a subclass of the set with a __del__",
    test_gc=NOT_SHARED,
    test_init=NO_INIT,
    test_new_or_init=NO_INIT,
    test_pickling="it gives the set attributes",
    test_subclass_with_custom_hash="it needs a subclass of the set with a __hash__",
    **(OF_3_14 if IS_3_14 else {}),
)

TestBasicOpsEmpty = of_module("TestBasicOpsEmpty", test_repr=NAMED)
TestBasicOpsSingleton = of_module("TestBasicOpsSingleton", test_repr=NAMED)
TestBasicOpsTuple = of_module("TestBasicOpsTuple", test_repr=NAMED)
TestBasicOpsString = of_module("TestBasicOpsString", test_repr=NAMED)
TestBasicOpsBytes = of_module("TestBasicOpsBytes", test_repr=NAMED)
TestBasicOpsMixedStringBytes = of_module("TestBasicOpsMixedStringBytes", test_repr=NAMED)

TestExceptionPropagation = of_module(
    "TestExceptionPropagation", test_changingSizeWhileIterating=ONE_MOMENT
)
TestSetOfSets = of_module("TestSetOfSets")
TestBinaryOps = of_module("TestBinaryOps")
TestUpdateOps = of_module("TestUpdateOps")
TestMutate = of_module("TestMutate")

TestSubsetEqualEmpty = of_module("TestSubsetEqualEmpty", {"left": Set(), "right": Set()})
TestSubsetEqualNonEmpty = of_module(
    "TestSubsetEqualNonEmpty", {"left": Set([1, 2]), "right": Set([1, 2])}
)
TestSubsetEmptyNonEmpty = of_module(
    "TestSubsetEmptyNonEmpty", {"left": Set(), "right": Set([1, 2])}
)
TestSubsetPartial = of_module("TestSubsetPartial", {"left": Set([1]), "right": Set([1, 2])})
TestSubsetNonOverlap = of_module("TestSubsetNonOverlap", {"left": Set([1]), "right": Set([2])})

TestOnlySetsNumeric = of_module("TestOnlySetsNumeric")
TestOnlySetsDict = of_module("TestOnlySetsDict")
TestOnlySetsOperator = of_module("TestOnlySetsOperator")
TestOnlySetsTuple = of_module("TestOnlySetsTuple")
TestOnlySetsString = of_module("TestOnlySetsString")
TestOnlySetsGenerator = of_module("TestOnlySetsGenerator")

TestCopyingEmpty = of_module("TestCopyingEmpty")
TestCopyingSingleton = of_module("TestCopyingSingleton", test_copy=COPIED)
TestCopyingTriple = of_module("TestCopyingTriple", test_copy=COPIED)
TestCopyingTuple = of_module("TestCopyingTuple", test_copy=COPIED)
TestCopyingNested = of_module("TestCopyingNested", test_copy=COPIED)

TestIdentities = of_module("TestIdentities")
TestVariousIteratorArgs = of_module("TestVariousIteratorArgs")
TestWeirdBugs = of_module(
    "TestWeirdBugs",
    None,
    test_8420_set_merge=NOT_SHARED,
    test_merge_and_mutate=NOT_SHARED,
    **(BUGS_OF_3_14 if IS_3_14 else {}),
)
TestGraphs = of_module("TestGraphs")
