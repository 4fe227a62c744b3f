"""Two threads let go of the GIL and take it again at a given rate: two events each time.

Usage: paced.py EVENTS_A_SECOND SECONDS; prints how many a second there were, waits left out.
"""

import sys
import threading
import time
import zlib

rate, seconds = int(sys.argv[1]), float(sys.argv[2])
PERIOD_S = 0.002
# zlib lets go of the GIL for more than 5 KiB.
LARGE = bytes(5 * 1024 + 1)


def switch():
    done = 0
    each = max(1, round(rate / 2 / 2 * PERIOD_S))
    due = begun = time.monotonic()
    while due - begun < seconds:
        for _ in range(each):
            zlib.crc32(LARGE)
        done += each + 1
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))
    counts.append(2 * done / (time.monotonic() - begun))


counts = []
threads = [threading.Thread(target=switch) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(round(sum(counts)))
