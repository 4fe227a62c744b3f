"""Two threads that always want the GIL, until each has seen it come back SWITCHES times.

Usage: spinning.py SWITCHES [INTERVAL_MS]; runs on Python 2.7 and later, with an interval on 3.
"""

import sys
import threading

if sys.version_info[0] == 2:
    # After 100 ticks, as is the default, it would let go a million times a second.
    sys.setcheckinterval(10000)
elif len(sys.argv) > 2:
    sys.setswitchinterval(int(sys.argv[2]) / 1e3)

switches = int(sys.argv[1])
last = None
seen = {"left": 0, "right": 0}


def spin(me):
    global last
    while min(seen.values()) < switches:
        if last != me:
            last = me
            seen[me] += 1


threads = [threading.Thread(target=spin, name=name, args=(name,)) for name in seen]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
