"""Prints how often a thread was made to let go of the GIL inside of a lock.

It is in and out of the lock all the time; another one looks after each of its turns. A turn in
which the kernel has left it standing inside of the lock, or for too long altogether, is not
counted: nobody waits for ever for such a one.
"""

import json
import threading
from time import perf_counter_ns

LOOKS = 200
# A holder may stay inside of one lock for 0.25 ms, and is asked in vain for 5 ms at most after
# its quantum of 2 ms; a part of both passes before this program's clock sees it.
INSIDE_NS = 150_000
TURN_NS = 6_500_000


def main():
    lock = threading.Lock()
    uses = [0]
    entered_ns = [0]
    looks = 0
    inside = 0
    late = 0

    def use():
        while looks < LOOKS:
            with lock:
                entered_ns[0] = perf_counter_ns()
                uses[0] += 1
                sum((1, 2, 3, 4, 5, 6, 7, 8))

    thread = threading.Thread(target=use)
    thread.start()
    while looks < LOOKS:
        before = uses[0]
        now_ns = perf_counter_ns()
        while uses[0] == before:
            then_ns, now_ns = now_ns, perf_counter_ns()
        now_ns = perf_counter_ns()
        is_free = lock.acquire(False)
        looks += 1
        if is_free:
            lock.release()
        elif now_ns - entered_ns[0] > INSIDE_NS or now_ns - then_ns > TURN_NS:
            late += 1
        else:
            inside += 1
    thread.join()
    print(json.dumps({"looks": looks, "inside": inside, "late": late}))


main()
