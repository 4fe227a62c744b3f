"""Twenty threads look each millisecond whether there is something to do, for SECONDS.

Usage: polling.py sleep|get SECONDS
"""

import contextlib
import queue
import sys
import threading
import time

how, seconds = sys.argv[1], float(sys.argv[2])
THREADS = 20
items = queue.Queue()
until = time.monotonic() + seconds


def look():
    while time.monotonic() < until:
        if how == "sleep":
            time.sleep(0.001)
            continue
        with contextlib.suppress(queue.Empty):
            items.get(timeout=0.001)


threads = [threading.Thread(target=look, name=f"looker-{number}") for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
