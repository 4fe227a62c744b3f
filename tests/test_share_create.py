"""A heap that any number of processes ask for at once: one makes and fills it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ungil import share

SIZE = 1 << 22

# Says on stdout what it finds, and whether it has made it.
RACER = """
import os, sys
from ungil import share

def fill(heap):
    print("made", flush=True)
    for number in range(200):
        heap.root[str(number)] = [number]

sys.stdin.read(1)
heap = share.Heap.open(sys.argv[1], create=True, max_size=1 << 22, init=fill)
print(len(heap.root), heap.root["199"][0], flush=True)
"""


@pytest.fixture
def name() -> Iterator[str]:
    name = f"test.{os.getpid()}_create"
    yield name
    for kind in ("heap", "making"):
        path_of(name, kind).unlink(missing_ok=True)


def path_of(name: str, kind: str = "heap") -> Path:
    return Path(f"/dev/shm/ungil-{kind}-{os.geteuid()}-{name}")


def fill(heap: share.Heap) -> None:
    heap.root["filled"] = True


def test_of_many_processes_one_makes_the_heap_and_all_find_it_full(name: str) -> None:
    for _ in range(2):
        command = [sys.executable, "-c", RACER, name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        racers = [subprocess.Popen(command, text=True, **pipes) for _ in range(6)]  # type: ignore[call-overload]
        for racer in racers:
            assert racer.stdin
            racer.stdin.write("x")
            racer.stdin.flush()
        said = [racer.communicate()[0].split("\n")[:-1] for racer in racers]
        assert [racer.returncode for racer in racers] == [0] * 6
        assert sorted(len(lines) for lines in said) == [1, 1, 1, 1, 1, 2]
        assert {lines[-1] for lines in said} == {"200 199"}
        share.Heap.open(name).unlink()


def test_of_many_threads_one_makes_the_heap(name: str) -> None:
    made: list[int] = []

    def make(_number: int) -> share.Heap:
        return share.Heap.open(name, create=True, max_size=SIZE, init=init)

    def init(heap: share.Heap) -> None:
        made.append(threading.get_ident())
        fill(heap)

    with ThreadPoolExecutor(8) as pool:
        heaps = list(pool.map(make, range(32)))
    assert len(made) == 1
    assert all(heap == heaps[0] and heap.root["filled"] for heap in heaps)


def test_who_waits_makes_it_if_its_maker_is_killed(name: str) -> None:
    code = (
        "import sys, signal; from ungil import share\n"
        "def fill(heap):\n"
        "    heap.root['half'] = True\n"
        "    print('half', flush=True)\n"
        "    signal.pause()\n"
        "share.Heap.open(sys.argv[1], create=True, max_size=1 << 22, init=fill)\n"
    )
    command = [sys.executable, "-c", code, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout
        assert maker.stdout.readline() == "half\n"
        assert not path_of(name).exists()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(share.Heap.open, name, create=True, max_size=SIZE, init=fill)
            maker.send_signal(signal.SIGKILL)
            heap = waiting.result()
    assert dict(heap.root.items()) == {"filled": True}
    assert not path_of(name, "making").exists()


def test_an_init_that_fails_leaves_no_heap_and_the_next_one_makes_it(name: str) -> None:
    def fail(heap: share.Heap) -> None:
        heap.root["half"] = True
        raise LookupError("no data")

    with pytest.raises(LookupError, match="no data"):
        share.Heap.open(name, create=True, max_size=SIZE, init=fail)
    assert not path_of(name).exists()
    assert not path_of(name, "making").exists()
    heap = share.Heap.open(name, create=True, max_size=SIZE, init=fill)
    assert dict(heap.root.items()) == {"filled": True}


def test_a_heap_that_is_there_is_not_made_again(name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    heap.root["old"] = 1
    again = share.Heap.open(name, create=True, max_size=SIZE * 2, init=fill)
    assert again == heap
    assert (again.max_size, dict(again.root.items())) == (SIZE, {"old": 1})


def test_an_init_that_opens_its_own_heap_by_name_is_told_so(name: str) -> None:
    def ask_again(_heap: share.Heap) -> None:
        share.Heap.open(name, create=True)

    with pytest.raises(RuntimeError, match="this thread is still making the heap"):
        share.Heap.open(name, create=True, max_size=SIZE, init=ask_again)
    with pytest.raises(FileNotFoundError, match="no heap named"):
        share.Heap.open(name)


def test_an_init_may_fork(name: str) -> None:
    def fill_by_children(heap: share.Heap) -> None:
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=put, args=(heap, number)) for number in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()

    heap = share.Heap.open(name, create=True, max_size=SIZE, init=fill_by_children)
    assert sorted(heap.root.items()) == [(str(number), number) for number in range(3)]


def put(heap: share.Heap, number: int) -> None:
    heap.root[str(number)] = number


def test_a_heap_that_somebody_made_without_asking_is_taken(name: str) -> None:
    def be_overtaken(_heap: share.Heap) -> None:
        share.Heap(name, max_size=SIZE).root["theirs"] = True

    heap = share.Heap.open(name, create=True, max_size=SIZE, init=be_overtaken)
    assert dict(heap.root.items()) == {"theirs": True}


def test_a_link_in_the_way_is_not_followed(name: str, tmp_path: Path) -> None:
    path_of(name, "making").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="remove it"):
        share.Heap.open(name, create=True, max_size=SIZE)
    assert not (tmp_path / "elsewhere").exists()


def test_size_and_init_are_for_who_makes_it(name: str) -> None:
    with pytest.raises(TypeError, match="create=True"):
        share.Heap.open(name, max_size=SIZE)
    with pytest.raises(TypeError, match="create=True"):
        share.Heap.open(name, init=fill)
