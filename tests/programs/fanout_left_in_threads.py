"""A fan-out that is left to the end of its program, where its threads run."""

import threading
import time

from ungil.fanout import fanout


def task(item):
    if item:
        while threading.main_thread().is_alive():
            time.sleep(0.001)
        print(f"ended {item}\n", end="", flush=True)


outcomes = fanout(task, range(3), mode="threads")
next(outcomes)
