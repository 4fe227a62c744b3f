"""A thread that computes, and one that comes back from 2 ms of I/O again and again.

Usage: convoy.py TIMES; runs on Python 2.7 and later. Its threads stay until its input ends.
"""

import select
import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

times = int(sys.argv[1])
over = False
told_to_end = threading.Event()


def compute():
    while not over:
        pass
    told_to_end.wait()


def serve():
    global over
    for _ in range(times):
        # Long enough that the computing thread has taken the GIL by the time this returns.
        select.select([], [], [], 0.002)
    over = True
    told_to_end.wait()


threads = [threading.Thread(target=compute, name="cpu"),
           threading.Thread(target=serve, name="io")]
for thread in threads:
    thread.start()
sys.stdin.read()
told_to_end.set()
for thread in threads:
    thread.join()
