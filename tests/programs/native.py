"""One thread is in native code with the GIL while another one wants it.

Usage: native.py TRUTH_LIBRARY hold|compute TIMES MICROSECONDS [DEADLINE]; Python 2.7 and later.
"hold" sleeps, "compute" uses the processor, for so long, that many times. After DEADLINE seconds
SIGALRM ends the program, whatever it does. Its threads stay until its input ends.
Prints JSON: the times [began, ended] of each call, in nanoseconds of CLOCK_MONOTONIC.
"""

import ctypes
import json
import signal
import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

library, what, times, microseconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
call = getattr(ctypes.PyDLL(library), what)
calls = []
told_to_end = threading.Event()


def keep():
    began, ended = ctypes.c_uint64(), ctypes.c_uint64()
    for _ in range(times):
        call(microseconds, ctypes.byref(began), ctypes.byref(ended))
        calls.append((began.value, ended.value))
    told_to_end.wait()


def want():
    while len(calls) < times:
        pass
    told_to_end.wait()


if len(sys.argv) > 5:
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[5]))
threads = [threading.Thread(target=want, name="wanting"),
           threading.Thread(target=keep, name="keeping")]
for thread in threads:
    thread.start()
sys.stdin.read()
told_to_end.set()
for thread in threads:
    thread.join()
json.dump(calls, sys.stdout)
