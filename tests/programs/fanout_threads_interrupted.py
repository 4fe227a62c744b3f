"""A fan-out in threads whose item says when somebody waits for its end, and ends at a line."""

import os
import sys
import threading
import time

from ungil.fanout import fanout


def is_waited_for():
    """Whether the main thread is in join()."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code is not threading.Thread.join.__code__:
        frame = frame.f_back
    return frame is not None


def work(item):
    print("begins", item, flush=True)
    while not is_waited_for():
        time.sleep(0.001)
    print("is waited for", item, flush=True)
    sys.stdin.readline()
    print("ends", item, flush=True)


try:
    list(fanout(work, range(100), limit=1))
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
