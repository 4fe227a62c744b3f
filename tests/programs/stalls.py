"""Some threads are busy, and one keeps the GIL for known times now and then.

Usage: stalls.py TRUTH_LIBRARY COUNT STALL_MS PAUSE_MS [BUSY_THREADS]; prints a line with the
times [began, ended] of each stall, in nanoseconds of CLOCK_MONOTONIC, as JSON.
"""

import ctypes
import json
import sys
import threading
import time

library, count, stall_ms, pause_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
busy = int(sys.argv[5]) if len(sys.argv) > 5 else 1
keeping = ctypes.PyDLL(library)
over = threading.Event()


def answer():
    while not over.is_set():
        time.sleep(0.0005)


def stall(began, ended):
    keeping.hold(stall_ms * 1000, ctypes.byref(began), ctypes.byref(ended))  # the line


def stalling():
    for _ in range(count):
        time.sleep(pause_ms / 1000)
        began, ended = ctypes.c_uint64(), ctypes.c_uint64()
        stall(began, ended)
        print(json.dumps([began.value, ended.value]), flush=True)


threads = [threading.Thread(target=answer, name=f"busy-{it}") for it in range(busy)]
threads.append(threading.Thread(target=stalling, name="stalling"))
for thread in threads:
    thread.start()
threads[-1].join()
over.set()
