"""Some threads are busy, and one keeps the GIL for as long as it is told.

Usage: stalls.py TRUTH_LIBRARY [BUSY_THREADS]. For each line on stdin, a number of milliseconds, it
keeps the GIL for so long, and prints the times [began, ended] in nanoseconds of CLOCK_MONOTONIC. A
line `fork` makes it fork a child that does the rest, whose process id it prints.
"""

import ctypes
import json
import os
import sys
import threading
import time

keeping = ctypes.PyDLL(sys.argv[1])
busy = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def answer():
    while True:
        time.sleep(0.0005)


def begin_answering():
    for number in range(busy):
        threading.Thread(target=answer, name=f"busy-{number}", daemon=True).start()


def stall(milliseconds, began, ended):
    keeping.hold(milliseconds * 1000, ctypes.byref(began), ctypes.byref(ended))  # the line


begin_answering()
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    if line.strip() == "fork":
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            break
        begin_answering()
        print(os.getpid(), flush=True)
        continue
    began, ended = ctypes.c_uint64(), ctypes.c_uint64()
    stall(int(line), began, ended)
    print(json.dumps([began.value, ended.value]), flush=True)
