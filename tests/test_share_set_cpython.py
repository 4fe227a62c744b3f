"""CPython's own test_set, run against shared sets."""

from cpython_suites import shared_in_own_heap, suite

from ungil import share

Set = shared_in_own_heap(set, share.set)
MODULE = "test.test_set"
NAMES = {"set": Set}

NO_CONSTRUCTOR = "the class of a shared set has no constructor: a heap makes them"
NOT_SHARED = "its members are objects of a class of its own, which cannot be shared"
OF_ONE_MOMENT = "iterating goes through the members of one moment, and is not disturbed by changes"

TestSet = suite(
    MODULE,
    "TestSet",
    names=NAMES,
    attributes={"thetype": Set, "basetype": set},
    displays=(set,),
    omitted={},
)


def plain(name, displays=(set,), **attributes):
    return suite(MODULE, name, names=NAMES, attributes=attributes, displays=displays, omitted={})


for _name in """TestBasicOpsEmpty TestBasicOpsSingleton TestBasicOpsTuple TestBasicOpsString TestBasicOpsBytes
TestBasicOpsMixedStringBytes TestExceptionPropagation TestSetOfSets TestBinaryOps TestUpdateOps TestMutate
TestOnlySetsNumeric TestOnlySetsDict TestOnlySetsOperator TestOnlySetsTuple TestOnlySetsString TestOnlySetsGenerator
TestCopyingEmpty TestCopyingSingleton TestCopyingTriple TestCopyingTuple TestCopyingNested
TestIdentities TestVariousIteratorArgs TestWeirdBugs TestGraphs TestBasicOpsTriple TestBinaryOpsMutating_Set_Set TestMethodsMutating_Set_Set""".split():
    globals()[_name] = plain(_name)

for _name, l, r in (("TestSubsetEqualEmpty", (), ()), ("TestSubsetEqualNonEmpty", (1, 2), (1, 2)),
    ("TestSubsetEmptyNonEmpty", (), (1, 2)), ("TestSubsetPartial", (1,), (1, 2)), ("TestSubsetNonOverlap", (1,), (2,))):
    globals()[_name] = plain(_name, left=Set(l), right=Set(r))
