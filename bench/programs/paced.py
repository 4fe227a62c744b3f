"""Two threads let go of the GIL and take it again at a given rate: two events each time.

Usage: paced.py EVENTS_A_SECOND SECONDS
"""

import sys
import threading
import time

rate, seconds = int(sys.argv[1]), float(sys.argv[2])
PERIOD_S = 0.002


def switch():
    each = max(1, round(rate / 2 / 2 * PERIOD_S))
    due = begun = time.monotonic()
    while due - begun < seconds:
        for _ in range(each):
            time.sleep(0)
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))


threads = [threading.Thread(target=switch) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
