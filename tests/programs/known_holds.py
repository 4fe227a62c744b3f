"""One thread keeps the GIL for known times while another waits for it, both by their own clock.

Usage: known_holds.py TRUTH_LIBRARY COUNT MICROSECONDS; runs on Python 2.7 and later.
Prints JSON: for each hold of the thread "holder" the times [before, began, ended, after], where
"before" was taken before it got the GIL and "after" once it had let go; for each wait of the
thread "waiter" the times [asked, got]; and the kernel's ids of both. Nanoseconds of
CLOCK_MONOTONIC.
"""

import ctypes
import json
import os
import sys
import threading

library, count, microseconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keeping, releasing = ctypes.PyDLL(library), ctypes.CDLL(library)
for dll in (keeping, releasing):
    dll.clock_ns.restype = dll.woken.restype = ctypes.c_uint64

readable, writable = os.pipe()
holds, waits, tids = [], [], {}


def holder():
    tids["holder"] = keeping.thread_id()
    began, ended = ctypes.c_uint64(), ctypes.c_uint64()
    for _ in range(count):
        before = releasing.clock_ns()
        keeping.wake(writable)
        keeping.hold(microseconds, ctypes.byref(began), ctypes.byref(ended))
        after = releasing.clock_ns()
        holds.append((before, began.value, ended.value, after))
        # Lets the waiter come back to its pipe, so that it sleeps when the next hold begins.
        releasing.hold(1000, ctypes.byref(began), ctypes.byref(ended))
    os.close(writable)


def waiter():
    tids["waiter"] = keeping.thread_id()
    while True:
        asked = releasing.woken(readable)
        got = keeping.clock_ns()
        if asked == 0:
            return
        waits.append((asked, got))


threads = [
    threading.Thread(target=holder, name="holder"),
    threading.Thread(target=waiter, name="waiter"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump({"holds": holds, "waits": waits, "tids": tids}, sys.stdout)
