"""Threads that loop for a while and note the gaps between their turns: Tim Peters' table of 2002.

Usage: peters.py SPAN THREADS; runs on Python 2.7 and later.

Prints a row for each thread: its number, its mean gap and its longest gap in milliseconds, and at
which of how many turns the longest one was. Written from the description of his program, and
apart from the lab's workload, against which it is held.
"""

from __future__ import print_function

import sys
import threading
import time

span, count = float(sys.argv[1]), int(sys.argv[2])
rows = [None] * count


def loop(number):
    turns = where = 0
    total = longest = 0.0
    before = begun
    while before < begun + span:
        now = time.time()
        gap, before = now - before, now
        total += gap
        if gap > longest:
            longest, where = gap, turns
        turns += 1
    rows[number] = (number, total / turns * 1e3, longest * 1e3, where, turns)


threads = [threading.Thread(target=loop, args=(number,)) for number in range(count)]
begun = time.time()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for row in rows:
    print("%d %.9f %.9f %d %d" % row)
