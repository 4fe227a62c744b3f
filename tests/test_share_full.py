"""A heap that is full stays readable, and things can be deleted from it, by whoever comes new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from suite import PROGRAMS, run_python

from ungil import share

MIB = 1 << 20


def fill(heap: share.Heap) -> None:
    """Leave no room in it for anything."""
    root = heap.root
    root["lists"] = [[number] for number in range(300)]
    root["by name"] = {"one": {"two": 2}}
    root["many"] = list(range(500))
    root["ring"] = deque(range(500))
    root["names"] = {f"name {number}": number for number in range(100)}
    root["members"] = set(range(100))
    root["lock"] = share.Lock()
    root["filling"] = []
    filling = root["filling"]
    for size in (20_000, 5_000, 1_000, 300, 100, 40, 20):
        with pytest.raises(MemoryError, match="max_size"):
            append_for_ever(filling, "x" * size)


def append_for_ever(filling: share.list[str], text: str) -> None:
    while True:
        filling.append(text)


@pytest.fixture
def full() -> Iterator[share.Heap]:
    """A heap that is full, with a name."""
    heap = share.Heap(f"test.{os.getpid()}_full", max_size=MIB)
    fill(heap)
    yield heap
    heap.unlink()


def test_a_new_process_reads_a_full_heap_and_makes_room_in_it(full: share.Heap) -> None:
    assert full.name is not None
    words = [sys.executable, PROGRAMS / "share_used_when_full.py", full.name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "seen": 300,
        "nested": 2,
        "popped": [0, 0, 3],
        "left": [109, 499, 99, 99],
    }
    assert full.root["again"][1].copy() == {"once": "more"}


REMOVALS: dict[str, Callable[[share.dict[str, share.list[int]]], object]] = {
    "pop of a list": lambda root: root["many"].pop(0),
    "remove": lambda root: root["many"].remove(250),
    "a slice": lambda root: root["many"].__delitem__(slice(5, 450)),
    "every other": lambda root: root["many"].__delitem__(slice(None, None, 2)),
    "clear": lambda root: root["many"].clear(),
    "reverse": lambda root: root["many"].reverse(),
    "sort": lambda root: root["many"].sort(reverse=True),
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_new_thread_takes_things_out_of_a_full_heap(full: share.Heap, removal: str) -> None:
    before: list[int] = full.root["many"].copy()
    ordinary: dict[str, list[int]] = {"many": before}
    raised: list[BaseException] = []

    def run() -> None:
        try:
            REMOVALS[removal](full.root)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not raised
    REMOVALS[removal](ordinary)  # type: ignore[arg-type]
    assert full.root["many"].copy() == ordinary["many"]


def test_many_new_threads_each_hold_many_objects_of_a_full_heap(full: share.Heap) -> None:
    counted: list[int] = []

    def run() -> None:
        held = [full.root["lists"][index] for index in range(300)]
        counted.append(sum(inner[0] for inner in held))

    threads = [threading.Thread(target=run) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [sum(range(300))] * 20


def test_a_heap_whose_file_system_is_full_stays_readable() -> None:
    done = run_python(PROGRAMS / "share_full_dev_shm.py")
    assert done.stdout.splitlines() == [
        "No space left on device",
        "its file system is full; make room in /dev/shm, or a heap without a name",
        str(sum(range(300))),
        "0",
        str(sum(range(300))),
        "1",
    ], done.stderr
