"""A program for a container: it says "ready", its own ids, and works until its input ends.

For each line that it reads it forks a child that works, too, and says "forked".
"""

import os
import sys
import threading
import time

is_over = threading.Event()


def compute():
    while not is_over.is_set():
        sum(range(10000))


def read():
    while not is_over.is_set():
        time.sleep(0.001)


def work():
    for function in (compute, read):
        threading.Thread(target=function, name=function.__name__, daemon=True).start()


work()
print("ready", os.getpid(), flush=True)
while sys.stdin.readline():
    if os.fork() == 0:
        work()
        threading.Event().wait()
    print("forked", flush=True)
is_over.set()
