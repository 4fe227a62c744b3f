"""To be looked at while it runs: looked_at.py KIND. Says "ready" and goes on until stdin ends.

hog       one thread keeps the GIL in native code for ten minutes, another waits for it, one sleeps
taking    the same, in holds of 200 ms with a pause of 50 ms after each
computing two threads compute in pure Python, one sleeps
crowd     six threads with the names of a pool compute in pure Python
idle      one thread sleeps, the main thread reads
single    the only thread computes
forked    a child computes in two threads, and so does its parent, on one processor
"""

import ctypes
import os
import sys
import threading
import time

native = ctypes.PyDLL(None)


def compute():
    total = 0
    while True:
        total += 1


def hog():
    native.usleep(600000000)


def take():
    while True:
        native.usleep(200000)
        time.sleep(0.05)


def want():
    while True:
        time.sleep(0.001)


def sleep():
    time.sleep(600)


def start(function, name):
    thread = threading.Thread(target=function, name=name)
    thread.daemon = True
    thread.start()


def ready():
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def wait():
    sys.stdin.read()
    os._exit(0)


kind = sys.argv[1]
if kind == "single":
    ready()
    compute()
start(sleep, "sleeper")
if kind == "forked":
    # Both on one processor: the kernel may leave next to nothing of two to other sessions.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    child = os.fork()
    start(compute, "first")
    start(compute, "second")
    if child == 0:
        sleep()
elif kind == "computing":
    start(compute, "first")
    start(compute, "second")
elif kind == "crowd":
    for number in range(6):
        start(compute, "ThreadPoolExecutor-0_%d" % number)
elif kind in ("hog", "taking"):
    start(want, "victim")
ready()
if kind == "hog":
    start(wait, "reader")
    start(hog, "hog")
    sleep()
elif kind == "taking":
    start(take, "taker")
wait()
