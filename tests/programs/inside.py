"""One thread is in and out of a lock all the time, another looks after each of its turns whether it
was made to let go of the GIL inside. Prints how often it looked, and how often that was so.
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
