"""One thread sleeps 2 ms at a time beside four that compute, for SECONDS; says how late it woke.

Prints a list of milliseconds as JSON. Runs on Python 3.3 and later.
"""

import json
import sys
import threading
import time

PERIOD_S = 0.002
WARM_UP_S = 0.3


def compute(is_over):
    total = 0
    while not is_over():
        for number in range(1000):
            total = (total * 31 + number) & 0xFFFF


def sleep(lasts_s):
    """How late each sleep of a while ended."""
    late_ms = []
    now_s = time.perf_counter()
    end_s = now_s + lasts_s
    while now_s < end_s:
        due_s = now_s + PERIOD_S
        time.sleep(PERIOD_S)
        now_s = time.perf_counter()
        late_ms.append((now_s - due_s) * 1e3)
    return late_ms


over = threading.Event()
threads = [threading.Thread(target=compute, args=(over.is_set,)) for _ in range(4)]
for thread in threads:
    thread.start()
sleep(WARM_UP_S)
late_ms = sleep(float(sys.argv[1]))
over.set()
for thread in threads:
    thread.join()
print(json.dumps(late_ms))
