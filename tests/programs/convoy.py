"""A thread that computes, and one that comes back from 2 ms of I/O again and again.

Usage: convoy.py TIMES; runs on Python 2.7 and later.
"""

import select
import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

times = int(sys.argv[1])
over = False


def compute():
    while not over:
        pass


def serve():
    global over
    for _ in range(times):
        # Long enough that the computing thread has taken the GIL by the time this returns.
        select.select([], [], [], 0.002)
    over = True


threads = [threading.Thread(target=compute, name="cpu"),
           threading.Thread(target=serve, name="io")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
