"""Leaves a process behind that computes in two threads until its standard input ends.

Usage: orphan.py; runs on Python 3.8 and later. Prints the process id of what is left behind.
"""

import os
import sys
import threading

computing, said = os.pipe()
if os.fork():
    os.read(computing, 1)
    os._exit(0)

over = False


def compute():
    while not over:
        pass


for _ in range(2):
    threading.Thread(target=compute).start()
print(os.getpid(), flush=True)
os.write(said, b"x")
# Whoever waits for the end of the output need not wait for this process.
for stream in (1, 2):
    os.dup2(os.open("/dev/null", os.O_WRONLY), stream)
sys.stdin.read()
over = True
