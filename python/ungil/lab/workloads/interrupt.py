"""Waits for Ctrl-C: the main thread in WHERE, beside two threads that compute.

    interrupt.py join|lock|tick|compute SECONDS

Prints {"ready": T} when it can be interrupted, and a line of JSON when it has been: at what time
KeyboardInterrupt was raised, at what time everything would have ended by itself, and samples of how
far the computing threads had come and how often the kernel had switched, every 20 ms. Times are
those of time.time().

After SECONDS the computing threads end and what the main thread waits for is there: a
KeyboardInterrupt that only comes then came because the program was over anyway. A tick takes about
SECONDS, too.

Runs on every Python since 2.7.
"""
from __future__ import print_function

import json
import resource
import signal
import sys
import threading
import time

now = time.time
SAMPLE_S = 0.02
COUNT = 2000
where, seconds = sys.argv[1], float(sys.argv[2])
interrupted = False
done = [0, 0]
samples = []
lock = threading.Lock()
lock.acquire()


def sample(at):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    samples.append((at, sum(done), usage.ru_nvcsw + usage.ru_nivcsw))


def compute(number, end):
    due = now()
    while not interrupted:
        left = COUNT
        while left > 0:
            left -= 1
        done[number] += COUNT
        at = now()
        if at >= end:
            break
        if number == 0 and at >= due:
            sample(at)
            due = at + SAMPLE_S
    if number == 0:
        sample(now())
        lock.release()


def tick(n):
    return -1 in xrange(n) if sys.version_info[0] == 2 else None in range(n)  # noqa: F821


signal.signal(signal.SIGINT, signal.default_int_handler)
signal.alarm(300)
caught = None
# Measured before anybody computes beside it.
if where == "tick":
    begun = now()
    tick(1000000)
    n = int(1000000 * seconds / (now() - begun))
end = now() + seconds
threads = [threading.Thread(target=compute, args=(number, end)) for number in range(2)]
for thread in threads:
    thread.daemon = True
    thread.start()
try:
    print(json.dumps({"ready": now()}))
    sys.stdout.flush()
    if where == "join":
        threads[0].join()
    elif where == "lock":
        lock.acquire()
    elif where == "tick":
        tick(n)
    else:
        while True:
            pass
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    caught = now()
interrupted = True
for thread in threads:
    thread.join()
print(json.dumps({"caught": caught, "end": end, "samples": samples}))
