"""Gets a signal while its main thread does one thing and others compute.

Usage: handled.py WHERE COUNT [SIGNALS [POLICY]]; runs on Python 3.7 and later. WHERE is what the main
thread does: join, lock, sleep, read, select, compute, or line, which is to wait for the GIL. COUNT
threads compute and never let go of the GIL unless they are asked to; one that does it says
"ready". It may be told the number of a policy to change to right before. Without SIGNALS, Ctrl-C ends it: it says "interrupted". With it, a timer sends SIGALRM a
thousand times a second, and it says "handled" when its Python handler was run for SIGTERM and for
SIGUSR1, which somebody has to send, and for so many SIGALRM, between which every computing thread
has gone on.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time

where, count = sys.argv[1], int(sys.argv[2])
wanted = int(sys.argv[3]) if sys.argv[3:] else 0
policy = int(sys.argv[4]) if sys.argv[4:] else None
turns = [0] * count
# Called like this, functions do not let go of the GIL.
library = ctypes.PyDLL(None)
write = library.write
start, never, handed = threading.Lock(), threading.Lock(), threading.Lock()
for lock in (start, never, handed):
    lock.acquire()
quantum_ns = ctypes.c_uint64()
reader, writer = os.pipe()


class Done(Exception):
    pass


def compute(number):
    start.acquire()
    start.release()
    if where == "line" and number == 0:
        handed.release()
    if policy is not None:
        library.ungil_policy_v1(ctypes.byref(quantum_ns))
        library.ungil_set_policy_v1(policy, quantum_ns)
    write(1, b"ready\n", 6)
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
    if count == 0:
        write(1, b"ready\n", 6)
    while True:
        pass


handled = 0
sent = set()
before = [0] * count


def handle(number, frame):
    global handled, before
    if number != signal.SIGALRM:
        sent.add(number)
    elif all(now > then for now, then in zip(turns, before)):
        before = list(turns)
        handled += 1
    if handled >= wanted and len(sent) == 2:
        # Another signal must not come while this one ends the program.
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Done


threads = [threading.Thread(target=compute, args=(number,), daemon=True) for number in range(count)]
for thread in threads:
    thread.start()
try:
    if wanted:
        for it in (signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(it, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    wait()
except KeyboardInterrupt:
    write(1, b"interrupted\n", 12)
except Done:
    write(1, b"handled\n", 8)
# A normal end would wait for threads that do not end.
os._exit(0)
