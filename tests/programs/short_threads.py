"""Many threads, one after the other or some at a time, each of which calls os.read a few times.

Usage: short_threads.py THREADS AT_A_TIME TIMES; runs on Python 2.7 and later.
"""

import os
import sys
import threading
import time

try:
    from _thread import _count as running
except ImportError:
    from thread import _count as running

count, at_a_time, times = map(int, sys.argv[1:])
null = os.open("/dev/null", os.O_RDONLY)


def read_often():
    for _ in range(times):
        os.read(null, 1)


threading.stack_size(256 * 1024)
for _ in range(count // at_a_time):
    threads = [threading.Thread(target=read_often) for _ in range(at_a_time)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 2.7's join() returns before a thread has ended, and one that is left behind when the program
    # exits is never done with the GIL. When it gives it up for good, it is not counted any more.
    while running():
        time.sleep(0.001)
