"""A thread that keeps the GIL in native code, asleep, below DEPTH functions, 20 times for 400 ms.

Usage: kept.py DEPTH THREADS. Another thread wants the GIL all the while; THREADS more only exist.
"""

import ctypes
import sys
import threading
import time

TIMES, MICROSECONDS = 20, 400_000
depth, threads = map(int, sys.argv[1:])
native = ctypes.PyDLL(None)
never = threading.Event()


def descend(functions: int) -> None:
    """Keep the GIL, that many functions further down."""
    if functions > 1:
        descend(functions - 1)
    else:
        native.usleep(MICROSECONDS)


def keep() -> None:
    """Keep the GIL, and let the others have it for a moment, again and again."""
    for _ in range(TIMES):
        descend(depth)
        time.sleep(0.001)


keeping = threading.Thread(target=keep)
for _ in range(threads):
    threading.Thread(target=never.wait, daemon=True).start()
keeping.start()
while keeping.is_alive():
    time.sleep(0.001)
