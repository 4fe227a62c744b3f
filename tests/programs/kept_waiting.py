"""Threads that are kept waiting for known times, and say themselves how long that was, in ns."""

import json
import sys
import threading
import time

import parking

HELD_MS = 200
TIMES = 5


class Shared:
    """Its lock is an object's, and it has a name."""


def of_an_object():
    """The waiter is kept by another thread that has the object's lock."""
    shared, waited_ns = Shared(), []

    def wait():
        for _ in range(TIMES):
            waited_ns.append(parking.take(shared))

    waiter = threading.Thread(target=wait, name="waiter")
    waiter.start()
    for _ in range(TIMES):
        before = len(waited_ns)
        parking.hold(shared, HELD_MS)
        while len(waited_ns) == before:
            pass
    waiter.join()
    return waited_ns


def of_the_program(make):
    """The waiter is kept by another thread that has a lock of the program."""
    lock, waited_ns, is_held = make(), [], [False]

    def wait():
        for _ in range(TIMES):
            while not is_held[0]:
                pass
            since_ns = time.perf_counter_ns()
            with lock:  # which the other thread has
                waited_ns.append(time.perf_counter_ns() - since_ns)
                is_held[0] = False

    waiter = threading.Thread(target=wait, name="waiter")
    waiter.start()
    for _ in range(TIMES):
        before = len(waited_ns)
        with lock:  # for a known time
            is_held[0] = True
            time.sleep(HELD_MS / 1000)
        while len(waited_ns) == before:
            pass
    waiter.join()
    return waited_ns


def of_a_stopped_world():
    """The waiter runs all the time, but for while the world stands still."""
    runs, is_over = [], []

    def run():
        while not is_over:
            runs.append(True)
            runs.pop()

    waiter = threading.Thread(target=run, name="waiter")
    waiter.start()
    stopped_ns = []
    for _ in range(TIMES):
        while not runs:
            pass
        stopped_ns.append(parking.stop(HELD_MS))
    is_over.append(True)
    waiter.join()
    return stopped_ns


KINDS = {
    "object": of_an_object,
    "lock": lambda: of_the_program(threading.Lock),
    "rlock": lambda: of_the_program(threading.RLock),
    "pause": of_a_stopped_world,
}
print(json.dumps(KINDS[sys.argv[1]]()))
