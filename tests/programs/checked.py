"""A thread waits for the GIL; the main thread does what it is told: `checked.py WORK STATUS`."""

import ctypes
import sys
import threading
import time

LIBRARY = ctypes.PyDLL(None)  # its functions keep the GIL


def sleeps_with_it():
    LIBRARY.usleep(400000)


def computes_in_c():
    begun = time.thread_time()
    size = 1000000
    while time.thread_time() - begun < 0.4:
        sum(range(size))
        size *= 2


def computes():
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        pass


def nothing():
    pass


def wants_it():
    while not over.is_set():
        time.sleep(0.001)


WORKS = [sleeps_with_it, computes_in_c, computes, nothing]
over = threading.Event()
other = threading.Thread(target=wants_it, name="other")
if sys.argv[1] != "alone":
    other.start()
for work in WORKS:
    if work.__name__ == sys.argv[1]:
        work()
if sys.argv[1] == "alone":
    computes()
else:
    over.set()
    other.join()
sys.exit(int(sys.argv[2]))
