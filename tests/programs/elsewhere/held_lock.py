"""A threading.Lock that one thread holds for long, and three that want it."""

import threading
import time

lock = threading.Lock()
over = threading.Event()


def hold():
    """Has it nearly all the time."""
    for _ in range(6):
        with lock:
            time.sleep(0.4)
        time.sleep(0.001)
    over.set()


def want():
    """Wants it."""
    while not over.is_set():
        with lock:
            pass


threads = [threading.Thread(target=hold, name="holder")]
threads += [threading.Thread(target=want, name=f"wanter-{number}") for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
