"""Counts N down to zero twice: in sequence, or in two threads at once.

    countdown.py N sequence|threads

Runs on every Python since 2.7. Prints a line of JSON: wall and CPU time, and context switches, of
the counting alone.
"""
from __future__ import print_function

import json
import resource
import sys
import threading
import time

clock = getattr(time, "perf_counter", time.time)


def count(n):
    while n > 0:
        n -= 1


def in_sequence(n):
    count(n)
    count(n)


def in_threads(n):
    threads = [threading.Thread(target=count, args=(n,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


n, how = int(sys.argv[1]), {"sequence": in_sequence, "threads": in_threads}[sys.argv[2]]
before, begun = resource.getrusage(resource.RUSAGE_SELF), clock()
how(n)
wall_s, after = clock() - begun, resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "wall_s": wall_s,
    "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "system_s": after.ru_stime - before.ru_stime,
    "voluntary_switches": after.ru_nvcsw - before.ru_nvcsw,
    "involuntary_switches": after.ru_nivcsw - before.ru_nivcsw,
}))
