"""Children by multiprocessing, each with a thread that lets go of the GIL a known number of times.

Usage: children.py METHOD COUNT TIMES; METHOD is spawn, fork or forkserver; Python 3.8 and later.
The thread "reader" of each child calls os.open once and os.read TIMES times.
Prints JSON: the process ids of the children.
"""

import json
import multiprocessing
import os
import sys
import threading


def read_often(times):
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(times):
        os.read(null, 1)


def work(times, pids):
    thread = threading.Thread(target=read_often, args=(times,), name="reader")
    thread.start()
    thread.join()
    pids.put(os.getpid())


if __name__ == "__main__":
    method, count, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context(method)
    pids = context.SimpleQueue()
    children = [context.Process(target=work, args=(times, pids)) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    json.dump(sorted(pids.get() for _ in children), sys.stdout)
