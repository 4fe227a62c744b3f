"""A thread waits for a lock that another one keeps for known times, and says how long that was.

    python known_parks.py TIMES MILLISECONDS

It prints JSON: whether there is a GIL, the thread's id, and its waits in ns.
"""

import json
import sys
import threading
import time

times, kept_s = int(sys.argv[1]), int(sys.argv[2]) / 1000
lock, waited_ns, is_kept, tids = threading.Lock(), [], [False], []


def wait():
    tids.append(threading.get_native_id())
    for _ in range(times):
        while not is_kept[0]:
            pass
        since_ns = time.perf_counter_ns()
        with lock:
            waited_ns.append(time.perf_counter_ns() - since_ns)
            is_kept[0] = False


waiter = threading.Thread(target=wait, name="waiter")
waiter.start()
for number in range(times):
    with lock:
        is_kept[0] = True
        time.sleep(kept_s)
    while len(waited_ns) == number:
        pass
waiter.join()
has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
print(json.dumps({"has_gil": has_gil, "tid": tids[0], "waited_ns": waited_ns}))
