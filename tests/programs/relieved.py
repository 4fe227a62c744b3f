"""Threads with names, each of which ends as the next one begins, which gets its ident.

Usage: relieved.py COUNT MILLISECONDS; Python 3.8 and later. Each thread computes for so long.
Prints JSON: the name of each by the kernel's id.
"""

import json
import sys
import threading
import time

count, lives_s = int(sys.argv[1]), int(sys.argv[2]) / 1000
names = {}


def live(name):
    names[threading.get_native_id()] = name
    until = time.monotonic() + lives_s
    while time.monotonic() < until:
        sum(range(1000))


for number in range(count):
    thread = threading.Thread(target=live, name="number-%d" % number, args=("number-%d" % number,))
    thread.start()
    thread.join()
json.dump(names, sys.stdout)
