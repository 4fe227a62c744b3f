"""Threads sleep for a lock, or for an item of a queue, until a certain thread ends that.

    lock_holders.py alone | together | queue | timeout

Prints each thread that slept with the one that ended it, by kernel thread ids, as JSON.
"""

import json
import queue
import sys
import threading
import time

TURNS = 5
lock = threading.Lock()


def wait_until_asleep(thread):
    """Until it is in a futex without a time limit: for a lock, and not for the GIL."""
    number = {"x86_64": "202", "aarch64": "98"}[MACHINE]
    while True:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            call, *arguments = file.read().split()
        if call == number and arguments[3] == "0x0":
            return
        time.sleep(0.001)


def takes_it():
    with lock:
        ended_by.append(threading.get_native_id())


def sleeps_for_the_lock(count):
    """Starts so many threads that want the lock, which this one has, and lets go of it."""
    threads = [threading.Thread(target=takes_it) for _ in range(count)]
    lock.acquire()
    for thread in threads:
        thread.start()
        wait_until_asleep(thread)
    lock.release()
    for thread in threads:
        thread.join()
    return threads


MACHINE = __import__("platform").machine()
ended_by = []
slept = []
me = threading.get_native_id()
kind = sys.argv[1]
for _ in range(TURNS):
    ended_by[:] = [me]
    if kind == "alone":
        (thread,) = sleeps_for_the_lock(1)
        slept.append([thread.native_id, me])
    elif kind == "together":
        # The first gets the lock from this one, the second from the first.
        sleeps_for_the_lock(2)
        slept += [[ended_by[1], ended_by[0]], [ended_by[2], ended_by[1]]]
    elif kind == "queue":
        items = queue.Queue()
        thread = threading.Thread(target=items.get)
        thread.start()
        wait_until_asleep(thread)
        items.put("item")
        thread.join()
        slept.append([thread.native_id, me])
    else:
        with lock:
            thread = threading.Thread(target=lock.acquire, kwargs={"timeout": 0.02})
            thread.start()
            thread.join()
        slept.append([thread.native_id, None])
print(json.dumps(slept))
