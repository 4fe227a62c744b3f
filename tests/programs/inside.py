"""Prints how often a thread was made to let go of the GIL inside of a lock.

It is in and out of the lock all the time; another one looks after each of its turns.
"""

import json
import threading

LOOKS = 200


def main():
    lock = threading.Lock()
    uses = [0]
    looks = 0
    inside = 0

    def use():
        while looks < LOOKS:
            with lock:
                uses[0] += 1
                sum((1, 2, 3, 4, 5, 6, 7, 8))

    thread = threading.Thread(target=use)
    thread.start()
    while looks < LOOKS:
        before = uses[0]
        while uses[0] == before:
            pass
        looks += 1
        if lock.acquire(False):
            lock.release()
        else:
            inside += 1
    thread.join()
    print(json.dumps({"looks": looks, "inside": inside}))


main()
