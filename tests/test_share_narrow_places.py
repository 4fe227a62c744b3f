"""What sharing says where /dev/shm is missing, or where a process may not have much."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from missing import Hiding, Mounts, ways
from suite import run_python

NO_FOLDER = """
from ungil import share

for make in (share.Heap, lambda name: share.Heap.open(name, create=True)):
    try:
        make("narrow")
    except OSError as error:
        print(error)
heap = share.Heap(max_size=1 << 22)
queue = heap.share(share.Queue())
queue.put("an item of more than fourteen bytes")
print(queue.get())
heap.root["row"] = share.array([1, 2, 3])
print(heap.root["row"].tolist())
with share.Pool(1, heap=heap) as pool:
    print(pool.submit(len, "four").result())
print(share.freeze({"a": [1]})["a"][0])
"""
CANNOT = "heaps with a name are files in /dev/shm, and none can be made there ("
INSTEAD = "): mount a tmpfs there (mount -t tmpfs tmpfs /dev/shm), or make a heap without a name"


@pytest.mark.parametrize("way", ways(), ids=str)
def test_without_dev_shm_only_heaps_with_a_name_are_refused(
    way: Mounts | Hiding, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", NO_FOLDER]
    command, variables = way.without(["/dev/shm"], words, tmp_path)
    environment = os.environ | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    *refused, item, row, four, one = done.stdout.splitlines()
    assert len(refused) == 2, done
    for sentence in refused:
        assert CANNOT in sentence
        assert sentence.endswith(INSTEAD)
    assert (item, row) == ("an item of more than fourteen bytes", "[1, 2, 3]")
    assert (four, one, done.stderr) == ("4", "1", "")


def test_without_address_space_a_heap_says_what_takes_less() -> None:
    code = """
import resource
from ungil import share

resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
for make in (lambda: share.Heap(max_size=1 << 34), lambda: share.Heap("narrow", max_size=1 << 34)):
    try:
        make()
    except MemoryError as error:
        print(error)
heap = share.Heap(max_size=1 << 22)
heap.root["a"] = 1
print(heap.root["a"])
"""
    done = run_python("-c", code)
    *refused, one = done.stdout.splitlines()
    assert len(refused) == 2, done
    for sentence in refused:
        assert sentence.startswith("no room for ")
        assert sentence.endswith(
            " bytes in the heap: the process may not have so much address space"
            " (RLIMIT_AS, ulimit -v); a heap with a smaller max_size takes less"
        )
    assert (one, done.stderr) == ("1", "")


def test_without_address_space_a_frozen_file_is_refused(tmp_path: Path) -> None:
    code = """
import resource, sys
from ungil import share

share.freeze([b"x" * (1 << 20) + bytes([number]) for number in range(64)], sys.argv[1])
with open("/proc/self/statm") as file:
    bytes_now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (bytes_now + (32 << 20),) * 2)
try:
    share.frozen(sys.argv[1])
except MemoryError as error:
    print(error)
"""
    path = tmp_path / "large.frozen"
    done = run_python("-c", code, path)
    assert done.stdout.startswith(f"{path}: mapping a frozen file takes as many addresses"), done
    assert done.stdout.endswith("(RLIMIT_AS, ulimit -v)\n")
