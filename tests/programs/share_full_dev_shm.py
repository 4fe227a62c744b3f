"""A heap whose file system is full is read by a new thread and a new process."""

import subprocess
import sys
import threading
from pathlib import Path

import small_dev_shm  # noqa: F401

from ungil import share

heap = share.Heap("full", max_size=1 << 30)
heap.root["lists"] = [[number] for number in range(300)]
heap.root["many"] = list(range(500))
try:
    with Path("/dev/shm/rest").open("wb", buffering=0) as rest:
        while True:
            rest.write(b"x" * 4096)
except OSError as error:
    print(error.strerror)
try:
    for number in range(10_000):
        heap.root[number] = b"x" * 4000
except MemoryError as error:
    print(str(error).rpartition(": ")[2])


def use():
    print(sum(inner[0] for inner in heap.root["lists"].copy()))
    print(heap.root["many"].pop(0))


thread = threading.Thread(target=use)
thread.start()
thread.join()
USE = """
from ungil import share
root = share.Heap.open("full").root
print(sum(inner[0] for inner in root["lists"].copy()))
print(root["many"].pop(0))
"""
sys.stdout.flush()
subprocess.run([sys.executable, "-c", USE], check=True)
