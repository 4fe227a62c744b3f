"""One process reads two levels of a shared dict again and again, while another has a transaction.

    shared_reading.py WAY OTHER SECONDS

WAY is `ungil` or `lmdb`. OTHER says what the other process does, in transactions of 20 ms with
5 ms between them: `nothing` (it has none), `reads` (what the reader reads, too), `writes
elsewhere` (in another dict of the same one), `writes here` (what the reader reads). Prints the
median of a read (`median_ns`), the longest one (`longest_ms`) and how many there were (`reads`).
"""

import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

HELD_S = 0.020
BETWEEN_S = 0.005

Read = Callable[[], object]
Begin = Callable[[], AbstractContextManager[object]]
Use = Callable[[], None]


def ungil(other: str) -> "tuple[Read, Begin, Use]":
    """Two dicts in a dict, one of which the reader reads."""
    from ungil import share

    heap = share.Heap(max_size=1 << 26)
    root = heap.root
    root["a"], root["b"] = {"x": 1}, {"y": 1}

    def use() -> None:
        if other == "reads":
            root["b"]["y"]
        else:
            root["b" if other == "writes here" else "a"]["y"] = 2

    return lambda: root["b"]["y"], heap.atomic, use


def lmdb(other: str) -> "tuple[Read, Begin, Use]":
    """Two keys. Each process opens the file for itself."""
    import lmdb

    folder = tempfile.mkdtemp(dir="/dev/shm")
    opened: dict[int, lmdb.Environment] = {}

    def file() -> lmdb.Environment:
        if os.getpid() not in opened:
            opened[os.getpid()] = lmdb.open(folder, map_size=1 << 26, sync=False)
        return opened[os.getpid()]

    writing: list[lmdb.Transaction] = []

    @contextmanager
    def begin() -> Generator[None]:
        with file().begin(write=other != "reads") as transaction:
            writing[:] = [transaction]
            yield

    def use() -> None:
        if other == "reads":
            writing[0].get(b"y")
        else:
            writing[0].put(b"y" if other == "writes here" else b"x", b"2")

    def read() -> object:
        with file().begin() as transaction:
            return transaction.get(b"y")

    made = lmdb.open(folder, map_size=1 << 26)
    with made.begin(write=True) as transaction:
        transaction.put(b"y", b"1")
    made.close()
    return read, begin, use


def hold(begin: Begin, use: Use) -> None:
    """Transactions without end."""
    while True:
        with begin():
            use()
            time.sleep(HELD_S)
        time.sleep(BETWEEN_S)


def main() -> None:
    """Reads for a time."""
    way, other, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    read, begin, use = {"ungil": ungil, "lmdb": lmdb}[way](other)
    child = os.fork() if other != "nothing" else 0
    if other != "nothing" and child == 0:
        try:
            hold(begin, use)
        finally:
            os._exit(1)
    taken: list[int] = []
    clock = time.perf_counter_ns
    end = clock() + seconds * 1e9
    try:
        while (begun := clock()) < end:
            read()
            taken.append(clock() - begun)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    # The first ones make what is kept, and open files.
    taken = taken[100:]
    said = {
        "median_ns": statistics.median(taken),
        "longest_ms": max(taken) / 1e6,
        "reads": len(taken),
    }
    print(json.dumps(said))


main()
