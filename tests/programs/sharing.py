"""Threads "usual" and "slow" share a fixed amount of work; the CPU time of each is printed.

Usage: sharing.py UNITS; runs on Python 3.7 and later.
"""

import sys
import threading
import time

units = int(sys.argv[1])
done = {"usual": 0, "slow": 0}
used = {}
both = threading.Barrier(2)


def work():
    name = threading.current_thread().name
    both.wait()
    before = time.thread_time()
    while sum(done.values()) < units:
        for _ in range(1000):
            pass
        done[name] += 1
    used[name] = time.thread_time() - before


threads = [threading.Thread(target=work, name=name) for name in done]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(used["usual"], used["slow"])
