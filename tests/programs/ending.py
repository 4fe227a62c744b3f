"""Ends in one of the ways a program can end, while two threads compute.

Usage: ending.py WAY; runs on Python 2.7 and later. Prints "ready" and, unless the way is one that
somebody else has to take, goes it: exit, _exit, abort, crash, exec (of the next arguments), late
(exit, with the library of the next argument, which is slow to end); or stays: it then waits to be
ended by a signal.
"""

import ctypes
import os
import signal
import sys
import threading
import time

way = sys.argv[1]
if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)
if way == "late":
    # A thread that waits looks whether the program ends when the interval is over: after that end
    # has begun.
    sys.setswitchinterval(0.1)
    ctypes.CDLL(sys.argv[2])

last, seen = None, {"left": 0, "right": 0}


def compute(me):
    global last
    while True:
        if last != me:
            last = me
            seen[me] += 1


for name in seen:
    thread = threading.Thread(target=compute, name=name, args=(name,))
    thread.daemon = True
    thread.start()
# By now both have held the GIL, waited for it, and are doing so.
while min(seen.values()) < 3:
    pass
print("ready")
sys.stdout.flush()

if way in ("exit", "late"):
    sys.exit(3)
elif way == "_exit":
    os._exit(3)
elif way == "abort":
    os.abort()
elif way == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif way == "exec":
    os.execv(sys.argv[2], sys.argv[2:])
elif way == "stay":
    # Not signal.pause, which sleeps on if the signal comes right before it is called.
    while True:
        time.sleep(0.001)
