"""Threads that wait for work which comes now and then: nobody keeps another one from working."""

import queue
import threading
import time

work, done = queue.Queue(), queue.Queue()


def idle():
    while (item := work.get()) is not None:
        done.put(item)


threads = [threading.Thread(target=idle, name=f"idle-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for number in range(8):
    time.sleep(0.1)
    work.put(number)
    done.get()
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
