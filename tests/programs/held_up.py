"""Stops ungil, which is its parent, calls os.read TIMES times in a thread, and lets ungil go on.

Usage: held_up.py TIMES; runs on Python 2.7 and later.
"""

import os
import signal
import sys
import threading

times = int(sys.argv[1])
null = os.open("/dev/null", os.O_RDONLY)


def read_often():
    for _ in range(times):
        os.read(null, 1)


def parent_has_stopped():
    stat = os.open("/proc/%d/stat" % os.getppid(), os.O_RDONLY)
    state = os.read(stat, 4096).decode().rpartition(")")[2].split()[0]
    os.close(stat)
    return state == "T"


os.kill(os.getppid(), signal.SIGSTOP)
while not parent_has_stopped():
    pass
reader = threading.Thread(target=read_often, name="reader")
reader.start()
reader.join()
os.kill(os.getppid(), signal.SIGCONT)
