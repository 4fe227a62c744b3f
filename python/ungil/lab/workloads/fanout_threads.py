"""ThreadPoolExecutor of LIMIT threads, as its documentation shows it: see fanout_work.py.

Python 2.7 has none; there it is as many threads that take items from one iterator.
"""
from __future__ import print_function

import socket
import time

from fanout_work import ask, host, main

try:
    from concurrent.futures import ThreadPoolExecutor
except ImportError:
    ThreadPoolExecutor = None


def mapped(function, items, limit):
    """How many results there are."""
    if ThreadPoolExecutor is not None:
        with ThreadPoolExecutor(limit) as executor:
            return sum(1 for _ in executor.map(function, items))
    import threading

    left, done = iter(items), []

    def take():
        for item in left:
            done.append(function(item))

    threads = [threading.Thread(target=take) for _ in range(limit)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(done)


def pool(work):
    """One call of `map`."""

    def sleep(item):
        time.sleep(work.rtt_s)
        return item

    def talk(item):
        return ask(socket, host(item), work.port)

    return mapped(talk if work.port else sleep, range(work.items), work.limit)


if __name__ == "__main__":
    main({"pool": pool})
