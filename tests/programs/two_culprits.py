"""One thread waits, first for one culprit and then for another, by its and their own clock.

Usage: two_culprits.py TRUTH_LIBRARY MICROSECONDS FIRST_COUNT SECOND_COUNT; Python 2.7 and later.
Prints JSON: for each culprit its holds [before, began, ended, after], and the waits [asked, got],
as known_holds.py does; and the kernel's ids of all three.
"""

import ctypes
import json
import os
import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

library, microseconds = sys.argv[1], int(sys.argv[2])
counts = {"first": int(sys.argv[3]), "second": int(sys.argv[4])}
keeping, releasing = ctypes.PyDLL(library), ctypes.CDLL(library)
for dll in (keeping, releasing):
    dll.clock_ns.restype = dll.woken.restype = ctypes.c_uint64

readable, writable = os.pipe()
holds, waits, tids = {"first": [], "second": []}, [], {}


def culprit(me):
    tids[me] = keeping.thread_id()
    began, ended = ctypes.c_uint64(), ctypes.c_uint64()
    for _ in range(counts[me]):
        before = releasing.clock_ns()
        keeping.wake(writable)
        keeping.hold(microseconds, ctypes.byref(began), ctypes.byref(ended))
        after = releasing.clock_ns()
        holds[me].append((before, began.value, ended.value, after))
        # Lets the victim come back to its pipe, so that it sleeps when the next hold begins.
        releasing.hold(1000, ctypes.byref(began), ctypes.byref(ended))


def victim():
    tids["victim"] = keeping.thread_id()
    while True:
        asked = releasing.woken(readable)
        got = keeping.clock_ns()
        if asked == 0:
            return
        waits.append((asked, got))


waiting = threading.Thread(target=victim, name="victim")
waiting.start()
for name in ("first", "second"):
    holding = threading.Thread(target=culprit, name=name, args=(name,))
    holding.start()
    holding.join()
os.close(writable)
waiting.join()
json.dump({"holds": holds, "waits": waits, "tids": tids}, sys.stdout)
