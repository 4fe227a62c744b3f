"""One thread keeps the GIL in native code again and again while another wants it.

Usage: keeping.py TIMES MICROSECONDS; runs on Python 2.7 and later.
Its threads stay until its input ends.
"""

import ctypes
import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)

times, microseconds = int(sys.argv[1]), int(sys.argv[2])
native = ctypes.PyDLL(None)  # calls that keep the GIL
over = False
told_to_end = threading.Event()


def convolve():
    native.usleep(microseconds)  # the line to be found


def keep():
    global over
    for _ in range(times):
        convolve()
    over = True
    told_to_end.wait()


def want():
    while not over:
        pass
    told_to_end.wait()


threads = [threading.Thread(target=want, name="wanting"),
           threading.Thread(target=keep, name="keeping")]
for thread in threads:
    thread.start()
sys.stdin.read()
told_to_end.set()
for thread in threads:
    thread.join()
