"""Keeps the GIL for known times, in a thread of the program that imports this, and tells them.

KNOWN_HOLDS_IN is a folder, and TRUTH_LIBRARY the library made of programs/truth.c. A process writes
to the file of its own number: for each hold the kernel's number of the thread and the times
`before began ended after`, where "before" was taken before it got the GIL and "after" once it had
let go, in nanoseconds of CLOCK_MONOTONIC. Runs on Python 3.8 and later; without the variables
nothing happens. As a program it runs another: known.py SCRIPT [ARGUMENT]...
"""

import ctypes
import os
import runpy
import sys
import threading
import time

COMPUTED_US = 10_000
PAUSE_S = 0.1


def keep(library, path):
    """Keep the GIL again and again."""
    keeping, releasing = ctypes.PyDLL(library), ctypes.CDLL(library)
    releasing.clock_ns.restype = ctypes.c_uint64
    began, ended = ctypes.c_uint64(), ctypes.c_uint64()
    tid = threading.get_native_id()
    told = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while True:
        before = releasing.clock_ns()
        keeping.compute(COMPUTED_US, ctypes.byref(began), ctypes.byref(ended))
        after = releasing.clock_ns()
        line = "%d %d %d %d %d\n" % (tid, before, began.value, ended.value, after)
        os.write(told, line.encode())
        time.sleep(PAUSE_S)


folder = os.environ.get("KNOWN_HOLDS_IN")
if folder:
    arguments = (os.environ["TRUTH_LIBRARY"], os.path.join(folder, str(os.getpid())))
    threading.Thread(target=keep, args=arguments, name="known", daemon=True).start()

if __name__ == "__main__":
    del sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
