"""Threads sleep for a lock, or for an item of a queue, until a certain thread ends that.

    lock_holders.py alone | together | queue | timeout

Prints each thread that slept with the one that ended it, by kernel thread ids, as JSON. It starts
threads itself, because `threading` lets them wait for each other, too.
"""

import _thread
import json
import platform
import queue
import sys
import threading
import time
from pathlib import Path

FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]
WAIT_BITSET = 9
GLIBC = platform.libc_ver()[0] == "glibc"
TURNS = 5
lock = _thread.allocate_lock()
begun, done = [], []
"""The threads that have begun to do something, and that have done it, in their order."""


def wait_for(is_there):
    """Looks again and again, so that nobody has to wake this thread."""
    while not is_there():
        time.sleep(0.001)


def start(function):
    """Starts a thread that calls the function."""
    count = len(begun)

    def run():
        begun.append(threading.get_native_id())
        function()
        done.append(threading.get_native_id())

    _thread.start_new_thread(run, ())
    wait_for(lambda: len(begun) > count)


def is_asleep():
    """Whether the last thread is in a futex without a time limit: for a lock, not for the GIL.

    In glibc a thread that wants the mutex of a GIL is in another kind of wait.
    """
    call, *arguments = Path(f"/proc/self/task/{begun[-1]}/syscall").read_text().split()
    if call != FUTEX:
        return False
    is_semaphore = not GLIBC or int(arguments[1], 16) & 0x7F == WAIT_BITSET
    return is_semaphore and arguments[3] == "0x0"


def take_it():
    """Has the lock for a moment."""
    with lock:
        done.append(threading.get_native_id())


def turn(kind):
    """Lets threads sleep once: each with the one that ends it."""
    del begun[:], done[:]
    me = threading.get_native_id()
    if kind == "queue":
        items = queue.Queue()
        start(items.get)
        wait_for(is_asleep)
        items.put("item")
        wait_for(lambda: done)
        return [[done[0], me]]
    if kind == "timeout":
        with lock:
            start(lambda: lock.acquire(timeout=0.02))
            wait_for(lambda: done)
        return [[done[0], None]]
    count = {"alone": 1, "together": 2}[kind]
    with lock:
        for _ in range(count):
            start(take_it)
            wait_for(is_asleep)
    wait_for(lambda: len(done) == 2 * count)
    # Each tells that it has the lock before it lets go of it, and then that it is done.
    took = list(dict.fromkeys(done))
    return [[thread, [me, *took][number]] for number, thread in enumerate(took)]


print(json.dumps([pair for _ in range(TURNS) for pair in turn(sys.argv[1])]))
