"""One long operation in C in the main thread, beside a thread that computes and one that sleeps.

    tick.py N

Prints {"ready": T} before the operation and waits for a SIGINT after it. Then a line of JSON: how
long the operation took, the longest time for which each of the other threads stood still (above
2 ms, otherwise 0), and at what time the signal was seen. Times of day are those of time.time().

The operation looks for something in a range that is not there: on Python 2 for -1 in an xrange, as
it was published. Python 3 answers that without looking, so there it looks for None.

Runs on every Python since 2.7.
"""
from __future__ import print_function

import json
import os
import signal
import sys
import threading
import time

now = time.time
over = False
gaps = {}


def note_gaps(name, pause):
    last, found = now(), []
    gaps[name] = found
    going = True
    while going:
        # Looked at before the clock, so that the last gap is noted, too.
        going = not over
        pause()
        at = now()
        if at - last > 0.002:
            found.append((last, at))
        last = at


def longest(name, since):
    return max([end - begin for begin, end in gaps[name] if end > since] or [0.0])


def tick(n):
    return -1 in xrange(n) if sys.version_info[0] == 2 else None in range(n)  # noqa: F821


n = int(sys.argv[1])
# Its default is to be ignored where a shell started us in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Against being left alone for ever, should whoever was to interrupt us be gone.
parent = os.getppid()
signal.alarm(300)
threads = [
    threading.Thread(target=note_gaps, args=("computing", lambda: None)),
    threading.Thread(target=note_gaps, args=("sleeping", lambda: time.sleep(0.001))),
]
for thread in threads:
    # They end with us, whatever ends us.
    thread.daemon = True
    thread.start()
while len(gaps) < len(threads):
    time.sleep(0.001)
ended = None
begun = now()
try:
    print(json.dumps({"ready": begun}))
    sys.stdout.flush()
    tick(n)
    ended = now()
    while os.getppid() == parent:
        time.sleep(0.01)
    sys.exit(1)
except KeyboardInterrupt:
    seen = now()
over = True
for thread in threads:
    thread.join()
print(json.dumps({
    "tick_s": (ended or seen) - begun,
    "still_s": {name: longest(name, begun) for name in gaps},
    "seen": seen,
}))
