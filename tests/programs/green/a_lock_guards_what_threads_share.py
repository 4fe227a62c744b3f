"""A lock guards what threads share."""

import threading
import time

lock, shared = threading.RLock(), []


def work(number):
    for _ in range(3):
        with lock, lock:
            before = len(shared)
            time.sleep(0.001)
            shared.append(number)
            assert len(shared) == before + 1


threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
[it.start() for it in threads]
[it.join() for it in threads]
print(sorted(shared))
