"""What is nested deep, in and out of a heap, in a thread with a small stack (0: the main thread).

    python deep.py STACK_BYTES DEPTH [CASE ...]

Each case is a process of its own. Prints `CASE: done` or `CASE: RecursionError`; anything else is a
bug.
"""

import copy
import os
import sys
import threading
from collections import deque
from enum import Enum

from ungil import share

stack, depth = int(sys.argv[1]), int(sys.argv[2])


def nested(wrap, levels):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS = {
    "list": lambda value: [value],
    "dict": lambda value: {"k": value},
    "deque": lambda value: deque([value]),
    "tuple": lambda value: (value,),
    "frozenset": lambda value: frozenset([value]),
    "mixed": lambda value: ([value],),
}


@share.struct
class Node:
    inner: object


class Deep(Enum):
    ONE = nested(WRAPS["tuple"], depth)


def list_chain(levels):
    """A list in a list, made from the inside, so that nothing is deep while it is made."""
    inner = heap.share([])
    for _ in range(levels):
        outer = heap.share([])
        outer.append(inner)
        inner = outer
    return inner


def struct_chain(levels):
    inner = None
    for _ in range(levels):
        inner = heap.share(Node(inner))
    return inner


def prepare(case):
    """What the main thread, which has enough stack, has ready before."""
    global heap, root
    heap = share.Heap()
    root = heap.root
    root["list"] = []
    kind = case.rpartition(" ")[2]
    if kind in WRAPS:
        values[kind] = nested(WRAPS[kind], depth)
        return
    chains.update(list=list_chain(depth), other=list_chain(depth))
    chains["struct"] = struct_chain(min(depth, 2_000))
    root["tuple"] = nested(WRAPS["tuple"], min(depth, 120))
    root["frozenset"] = nested(WRAPS["frozenset"], min(depth, 120))
    root["tuples"] = [nested(WRAPS["tuple"], min(depth, 120))]
    root["keys"] = {nested(WRAPS["tuple"], min(depth, 120)): 1}
    root["linked"] = [nested(WRAPS["tuple"], min(depth, 100)), (root["list"],)]


chains = {}
values = {}


def store(kind):
    root["stored"] = values[kind]


def key(kind):
    root[values[kind]] = 1


def get(kind):
    root.get(values[kind])


def member(kind):
    assert values[kind] not in root["list"]


def index(kind):
    root["list"].append(values[kind])
    root["list"].index(values[kind])


def free(_):
    root["chain"] = chains.pop("list")
    del root["chain"], root["tuple"], root["tuples"], root["keys"], root["linked"]
    chains.clear()


def collect(_):
    ring = heap.share([chains.pop("list")])
    ring.append(ring)
    del ring
    assert heap.gc()


def read(_):
    root["tuple"], root["frozenset"], root["tuples"][0], root["linked"][0]


def compare(_):
    assert root["tuples"].index(nested(WRAPS["tuple"], min(depth, 120))) == 0


def hashed(_):
    assert root["keys"][nested(WRAPS["tuple"], min(depth, 120))] == 1


CASES = {
    **{f"store {kind}": store for kind in WRAPS},
    **{f"key {kind}": key for kind in ("tuple", "frozenset")},
    **{f"get {kind}": get for kind in ("tuple", "frozenset")},
    **{f"member {kind}": member for kind in ("tuple", "frozenset")},
    **{f"index {kind}": index for kind in WRAPS},
    "repr": lambda _: repr(chains["list"]),
    "repr struct": lambda _: repr(chains["struct"]),
    "equal": lambda _: chains["list"] == chains["other"],
    "deepcopy": lambda _: copy.deepcopy(chains["list"]),
    "deepcopy struct": lambda _: copy.deepcopy(chains["struct"]),
    "compare": compare,
    "hash": hashed,
    "free": free,
    "collect": collect,
    "read": read,
    "enum": lambda _: root.update(stored=Deep.ONE),
}


def run(case):
    try:
        CASES[case](case.rpartition(" ")[2])
    except RecursionError:
        print(f"{case}: RecursionError", flush=True)
    else:
        print(f"{case}: done", flush=True)


def play(case):
    prepare(case)
    if stack:
        threading.stack_size(stack)
        thread = threading.Thread(target=run, args=[case])
        thread.start()
        thread.join()
    else:
        run(case)


for case in sys.argv[3:] or CASES:
    child = os.fork()
    if child == 0:
        play(case)
        # Python's own objects are not what this is about: they stay.
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        print(f"{case}: ended with {os.waitstatus_to_exitcode(status)}", flush=True)
