"""Threads of three names begin, wait, hold and end while the counters are read all the time.

Prints JSON: where a counter fell, the last reading, and what the process had counted before and
after it.
"""

import json
import sys
import threading
import time

from ungil import gil
from ungil.metrics._process import ProcessCounters

sys.setswitchinterval(0.0005)
counters = ProcessCounters({"main": "MainThread", "workers": "worker-*", "renamed": "late-*"})
FIELDS = ("waits", "waited_ns", "holds", "held_ns", "voluntary", "forced", "drop_requests")


def work():
    for _ in range(3):
        time.sleep(0.0005)
        sum(range(20_000))


def rename():
    work()
    threading.current_thread().name = "late-one"
    work()


fell = []
before = [(0,) * 7] * 4
for _ in range(25):
    threads = [threading.Thread(target=work, name=f"worker-{it}") for it in range(4)]
    threads += [threading.Thread(target=rename), threading.Thread(target=work, name="nobody's")]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        now = [tuple(getattr(it, field) for field in FIELDS) for it in counters.read()]
        fell += [(b, n) for b, n in zip(before, now, strict=False) if any(map(int.__lt__, n, b))]
        before = now


def whole():
    process = gil.process_stats()
    return {field: getattr(process, field) for field in FIELDS}


before = whole()
groups = {it.threads: {field: getattr(it, field) for field in FIELDS} for it in counters.read()}
json.dump(
    {
        "fell": fell,
        "groups": groups,
        "process": [before, whole()],
    },
    sys.stdout,
)
