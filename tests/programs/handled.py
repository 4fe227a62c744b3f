"""Gets a signal while its main thread does one thing and others compute.

Usage: handled.py WHERE COUNT [SIGNALS]; runs on Python 3.7 and later. WHERE is what the main
thread does: join, lock, sleep, read, select, compute, or line, which is to wait for the GIL. COUNT
threads compute and never let go of the GIL unless they are asked to; one that does it says
"ready". Without SIGNALS, Ctrl-C ends it: it says "interrupted". With it, a timer sends SIGALRM a
thousand times a second, and it says "handled" after so many runs of its Python handler, between
which every computing thread has gone on.
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
turns = [0] * count
# Unlike os.write, this does not let go of the GIL.
write = ctypes.PyDLL(None).write
start, never, handed = threading.Lock(), threading.Lock(), threading.Lock()
for lock in (start, never, handed):
    lock.acquire()
reader, writer = os.pipe()


class Done(Exception):
    pass


def compute(number):
    start.acquire()
    start.release()
    if where == "line" and number == 0:
        handed.release()
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
before = [0] * count


def handle(number, frame):
    global handled, before
    if all(now > then for now, then in zip(turns, before)):
        before = list(turns)
        handled += 1
        if handled == wanted:
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
