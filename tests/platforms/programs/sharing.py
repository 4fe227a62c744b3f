"""Two processes on one heap: a dict, a lock, a killed writer.

Says as JSON what is wrong, and how often both counted.
"""

import json
import os
import signal
import sys

from ungil import share

COUNTED = 5000


def in_child(work):
    """Forks, works, and says how the child ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def count(target, lock):
    for _ in range(COUNTED):
        target.incr("atomic")
        with lock:
            target["locked"] = target["locked"] + 1


def die_in_it(heap, target, lock, writable):
    """Is killed with the lock, in a transaction that has changed something."""
    with lock, heap.atomic():
        target["half"] = "done"
        os.write(writable, b"x")
        signal.pause()


def main():
    heap = share.Heap(max_size=64 << 20)
    heap.root["target"] = {"atomic": 0, "locked": 0}
    heap.root["lock"] = share.Lock()
    target, lock = heap.root["target"], heap.root["lock"]
    wrong = []

    child = in_child(lambda: count(target, lock))
    count(target, lock)
    if os.waitpid(child, 0)[1] != 0:
        wrong.append("the other process failed")
    for name in ("atomic", "locked"):
        if target[name] != 2 * COUNTED:
            wrong.append("{} is {} and not {}".format(name, target[name], 2 * COUNTED))

    readable, writable = os.pipe()
    child = in_child(lambda: die_in_it(heap, target, lock, writable))
    os.read(readable, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not lock.acquire(timeout=60):
        wrong.append("the lock of a dead process is not to be had")
    elif not lock.owner_died:
        wrong.append("nobody says that the owner of the lock has died")
    if "half" in target:
        wrong.append("half of what a killed process did is there")
    target["after"] = [1, 2]
    if list(target["after"]) != [1, 2]:
        wrong.append("the heap is not usable after a kill")
    json.dump({"wrong": wrong, "counted": target["locked"]}, sys.stdout)


if __name__ == "__main__":
    main()
