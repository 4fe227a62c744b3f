"""One thread sleeps TIMES times for a millisecond while two others block.

Usage: sleeping.py TIMES; runs on Python 3.8 and later.
Prints JSON: from when to when it slept, nanoseconds of CLOCK_MONOTONIC.
"""

import json
import os
import sys
import threading
import time

times = int(sys.argv[1])
readable, writable = os.pipe()


def sleep():
    # One sleep that is not counted: the others have blocked by then.
    time.sleep(0.01)
    began = time.monotonic_ns()
    for _ in range(times):
        time.sleep(0.001)
    ended = time.monotonic_ns()
    os.write(writable, b"x")
    json.dump([began, ended], sys.stdout)


blocked = threading.Thread(target=os.read, args=(readable, 1), name="blocked")
blocked.start()
sleeper = threading.Thread(target=sleep, name="sleeper")
sleeper.start()
sleeper.join()
blocked.join()
