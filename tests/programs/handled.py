"""Gets signals while its main thread does one thing and others compute.

Usage: handled.py WHERE COUNT POLICY HOW; runs on Python 3.7 and later. WHERE is what the main
thread does: join, lock, sleep, read, select, compute, or line, which is to wait for the GIL. COUNT
threads compute and never let go of the GIL unless they are asked to; one that does it changes to
the policy with the number POLICY and says "ready". HOW is what it does with signals:
at-once: exits with the number of the signal, without running any Python code;
default: says "interrupted" when Ctrl-C has raised KeyboardInterrupt;
a number: says "handled" when a Python handler ran for SIGTERM and SIGUSR1, which somebody has to
send, and so often for SIGALRM, which it sends itself a thousand times a second, not counting those
between which not every computing thread has gone on.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time

where, count, policy, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
# Functions called like this do not let go of the GIL.
library = ctypes.PyDLL(None)
quantum_ns = ctypes.c_uint64()
start, never, handed = threading.Lock(), threading.Lock(), threading.Lock()
for lock in (start, never, handed):
    lock.acquire()
reader, writer = os.pipe()
turns = [0] * count


def say(word):
    library.write(1, word + b"\n", len(word) + 1)


def ready():
    library.ungil_policy_v1(ctypes.byref(quantum_ns))
    library.ungil_set_policy_v1(policy, quantum_ns)
    say(b"ready")


def compute(number):
    start.acquire()
    start.release()
    if where == "line" and handed.locked():
        handed.release()
    ready()
    while True:
        turns[number] += 1


def wait():
    start.release()
    if where == "join":
        threads[0].join()
    elif where == "lock":
        never.acquire()
    elif where == "sleep":
        time.sleep(1000000)
    elif where == "read":
        os.read(reader, 1)
    elif where == "select":
        select.select([reader], [], [])
    elif where == "line":
        handed.acquire()
    elif not threads:
        ready()
    while True:
        pass


class Done(Exception):
    pass


handled, sent, before = 0, set(), [0] * count


def handle(number, frame):
    global handled, before
    if number != signal.SIGALRM:
        sent.add(number)
    elif all(turns[it] > before[it] for it in range(count)):
        before = list(turns)
        handled += 1
    if handled >= int(how) and len(sent) == 2:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Done


threads = [threading.Thread(target=compute, args=(number,), daemon=True) for number in range(count)]
for thread in threads:
    thread.start()
try:
    if how == "at-once":
        # A handler gets a number and a frame; _exit does not look at its second argument.
        library._exit.argtypes = [ctypes.c_int, ctypes.py_object]
        handle = library._exit
    if how != "default":
        for it in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(it, handle)
    if how.isdigit():
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    wait()
except KeyboardInterrupt:
    say(b"interrupted")
except Done:
    say(b"handled")
# A normal end would wait for threads that do not end.
os._exit(0)
