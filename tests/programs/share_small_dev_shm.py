"""Heaps with a name, and one without, in a /dev/shm that is soon full."""

from pathlib import Path

import small_dev_shm  # noqa: F401

from ungil import share


def fill(heap, megabytes):
    for number in range(megabytes):
        heap.root[number] = b"x" * (1 << 20)


named = share.Heap("small", max_size=1 << 30)
try:
    fill(named, 100)
except MemoryError as error:
    print(error)
print(len(named.root) > 40)
named.root.clear()
named.root["again"] = b"x" * (1 << 20)
print(len(named.root["again"]))
Path("/dev/shm/rest").touch()
try:
    Path("/dev/shm/rest").write_bytes(b"x" * (64 << 20))
except OSError as error:
    print(error.strerror)
anonymous = share.Heap(max_size=1 << 30)
fill(anonymous, 100)
print(len(anonymous.root))
