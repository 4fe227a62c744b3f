"""One thread sleeps 2 ms at a time beside four that compute, for SECONDS; says how late it woke.

With the word `process` a process computes in their place: four threads use one processor, too.
Prints a list of milliseconds as JSON. Runs on Python 3.3 and later.
"""

import json
import os
import signal
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


def beside_threads(lasts_s):
    over = threading.Event()
    threads = [threading.Thread(target=compute, args=(over.is_set,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    sleep(WARM_UP_S)
    late_ms = sleep(lasts_s)
    over.set()
    for thread in threads:
        thread.join()
    return late_ms


def beside_a_process(lasts_s):
    child = os.fork()
    if child == 0:
        compute(lambda: False)
    try:
        sleep(WARM_UP_S)
        return sleep(lasts_s)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


measure = beside_a_process if sys.argv[2:] == ["process"] else beside_threads
print(json.dumps(measure(float(sys.argv[1]))))
