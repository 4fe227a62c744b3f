"""Threads that sleep: away.py THREADS MILLISECONDS SECONDS, each so long at a time."""

import sys
import threading
import time

threads, pause_s, seconds = int(sys.argv[1]), float(sys.argv[2]) / 1e3, float(sys.argv[3])
end = time.monotonic() + seconds


def sleep():
    """Be off the GIL nearly all the time."""
    while time.monotonic() < end:
        time.sleep(pause_s)


started = [threading.Thread(target=sleep) for _ in range(threads)]
for thread in started:
    thread.start()
for thread in started:
    thread.join()
