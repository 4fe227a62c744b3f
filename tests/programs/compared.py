"""A thread that comes back from 2 ms of I/O again and again, beside one that computes or does not.

Usage: compared.py SECONDS convoy|calm; the threads have the same names both ways.
"""

import sys
import threading
import time

seconds, mode = float(sys.argv[1]), sys.argv[2]
until = time.monotonic() + seconds
over = threading.Event()


def compute():
    while not over.is_set():
        if mode == "calm":
            over.wait(0.01)


def serve():
    while time.monotonic() < until:
        time.sleep(0.002)
    over.set()


threads = [
    threading.Thread(target=compute, name="computer"),
    threading.Thread(target=serve, name="server-1"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
