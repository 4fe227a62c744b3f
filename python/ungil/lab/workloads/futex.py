"""What makes, or made, a Python call futex.

    futex.py N alone     imports a module N times that has been imported
    futex.py N idle      the same beside a thread that waits all the time
    futex.py N turns     two threads that take N turns each, one waiting for the other

Runs on every Python since 2.7. Prints a line of JSON: wall and CPU time of that alone.
"""
from __future__ import print_function

import json
import resource
import sys
import threading
import time

clock = getattr(time, "perf_counter", time.time)


def imports(n):
    for _ in range(n):
        import os  # noqa: F401


def beside_an_idle_thread(n):
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    imports(n)
    lock.release()
    thread.join()


def take_turns(n, mine, other):
    for _ in range(n):
        mine.acquire()
        other.release()


def turns(n):
    first, second = threading.Lock(), threading.Lock()
    second.acquire()
    thread = threading.Thread(target=take_turns, args=(n, second, first))
    thread.start()
    take_turns(n, first, second)
    thread.join()


n = int(sys.argv[1])
how = {"alone": imports, "idle": beside_an_idle_thread, "turns": turns}[sys.argv[2]]
before, begun = resource.getrusage(resource.RUSAGE_SELF), clock()
how(n)
wall_s, after = clock() - begun, resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "wall_s": wall_s,
    "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "system_s": after.ru_stime - before.ru_stime,
}))
