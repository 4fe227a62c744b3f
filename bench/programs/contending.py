"""Threads that contend for one object: contending.py KIND THREADS CHANGES; prints JSON."""

import json
import sys
import threading
import time

kind, threads, changes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shared_dict = dict.fromkeys(range(1_000), 0)
shared_list: list[int] = []
lock = threading.Lock()


def change_dict() -> None:
    """Each change takes the lock of the dict, for some tens of nanoseconds."""
    for number in range(changes):
        shared_dict[number % 1_000] = number


def change_list() -> None:
    """The same for a list, which grows and shrinks."""
    for number in range(changes // 2):
        shared_list.append(number)
        shared_list.pop()


def take_lock() -> None:
    """A lock of the program, held for as long as a line of Python takes."""
    for number in range(changes):
        with lock:
            shared_dict[0] = number


work = {"dict": change_dict, "list": change_list, "lock": take_lock}[kind]
ready = threading.Barrier(threads + 1)


def run() -> None:
    """Begins with all others."""
    ready.wait()
    work()


workers = [threading.Thread(target=run, name=f"worker-{it}") for it in range(threads)]
for worker in workers:
    worker.start()
ready.wait()
begun_s = time.perf_counter()
for worker in workers:
    worker.join()
print(json.dumps({"wall_s": time.perf_counter() - begun_s}))
