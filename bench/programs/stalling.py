"""Threads that answer and one that computes, and now and then one keeps the GIL for 50 ms.

Usage: stalling.py COUNT EVERY_S; prints [began, ended] of each stall, in ns of CLOCK_MONOTONIC.
"""

import ctypes
import json
import sys
import threading
import time

count, every_s = int(sys.argv[1]), float(sys.argv[2])
STALL_US = 50_000
keeping = ctypes.PyDLL(None)


def answer():
    while True:
        time.sleep(0.002)


def compute():
    while True:
        sum(range(20_000))
        time.sleep(0.01)


def stall():
    keeping.usleep(STALL_US)


def stalling():
    for _ in range(count):
        time.sleep(every_s)
        began = time.monotonic_ns()
        stall()
        print(json.dumps([began, time.monotonic_ns()]), flush=True)
    time.sleep(1.0)


for work in (answer, answer, compute):
    threading.Thread(target=work, daemon=True).start()
last = threading.Thread(target=stalling, name="stalling")
last.start()
last.join()
