"""Pure Python in several threads: each adds 1 COUNT times.

Usage: computing.py THREADS COUNT; runs on Python 2.7 and later.
"""

import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

count = int(sys.argv[2])


def compute():
    total = 0
    while total < count:
        total += 1


threads = [threading.Thread(target=compute) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
