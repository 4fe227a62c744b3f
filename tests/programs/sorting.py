"""A thread that keeps the GIL in native code for some 60 ms, TIMES times, while another one waits.

Usage: sorting.py TIMES
"""

import random
import sys
import threading
import time

times = int(sys.argv[1])
items = [random.random() for _ in range(200_000)]
over = threading.Event()


def keep():
    for _ in range(times):
        sorted(items)
        time.sleep(0.005)
    over.set()


def wait():
    while not over.is_set():
        time.sleep(0.001)


threads = [
    threading.Thread(target=keep, name="keeper"),
    threading.Thread(target=wait, name="waiter"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
