"""How evenly threads that do the same take turns, as Tim Peters measured it in 2002.

    fairness.py SPAN MOST

For 1 to MOST threads: SPAN seconds in which each loops and notes the gap between its turns.
All begin at the same moment, so the wait for a first turn is a gap, too.
Prints a line of JSON: for each number of threads a row for each thread, with its mean gap, its
longest gap, at which turn of how many that ended, and for how much of it no thread ran at all.

A gap in which nobody ran is not the GIL's doing: the kernel had taken the whole process off its
cores. Each thread writes down when it had its last turn; one that comes back late looks when the
others had theirs.

Runs on every Python since 2.7.
"""
from __future__ import print_function

import json
import sys
import threading
import time

clock = getattr(time, "perf_counter", time.time)
# A handoff takes some 50 us; a process that was preempted stands still for longer.
STANDSTILL_S = 0.0005


class Looper(threading.Thread):
    def __init__(self, number, lasts, standstills, start):
        threading.Thread.__init__(self)
        self.number = number
        self.lasts = lasts
        self.standstills = standstills
        self.begin = start
        self.begin_s = self.end_s = None
        self.row = None

    def run(self):
        self.begin.wait()
        me, lasts, end_s = self.number, self.lasts, self.end_s
        turns = longest_turn = 0
        longest = longest_begun = 0.0
        begun = last = lasts[me] = self.begin_s
        # A thread that gets its first turn only when all is over has waited for all of it.
        while last < end_s:
            now = clock()
            gap = now - last
            if gap > longest:
                longest, longest_turn, longest_begun = gap, turns, last
            if gap > STANDSTILL_S:
                silent_since = max(lasts)
                if now - silent_since > STANDSTILL_S:
                    self.standstills.append((silent_since, now))
            lasts[me] = last = now
            turns += 1
        self.row = {
            "tid": me,
            "mean_gap_ms": (last - begun) / max(1, turns) * 1e3,
            "max_gap_ms": longest * 1e3,
            "at_turn": longest_turn,
            "turns": turns,
            "max_gap": (longest_begun, longest_begun + longest),
        }


def overlap(one, other):
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def covered(gap, standstills):
    """How much of a gap standstills cover, in seconds; several threads may report the same."""
    total, reached = 0.0, gap[0]
    for begin, end in sorted(standstills):
        total += overlap((max(begin, reached), end), gap)
        reached = max(reached, end)
    return total


def measure(threads, span):
    lasts, standstills, start = [0.0] * threads, [], threading.Event()
    loopers = [Looper(number, lasts, standstills, start) for number in range(threads)]
    for looper in loopers:
        looper.start()
    begin_s = clock()
    for looper in loopers:
        looper.begin_s, looper.end_s = begin_s, begin_s + span
    start.set()
    for looper in loopers:
        looper.join()
    rows = [looper.row for looper in loopers]
    for row in rows:
        row["silent_ms"] = covered(row.pop("max_gap"), standstills) * 1e3
    return rows


span, most = float(sys.argv[1]), int(sys.argv[2])
print(json.dumps({"threads": [measure(threads, span) for threads in range(1, most + 1)]}))
