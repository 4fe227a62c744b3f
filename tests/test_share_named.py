"""Heaps with a name: found by it, by the user who made them alone."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ungil import share

SIZE = 1 << 22


@pytest.fixture
def name() -> Iterator[str]:
    name = f"test.{os.getpid()}_name-1"
    yield name
    path_of(name).unlink(missing_ok=True)


def path_of(name: str) -> Path:
    return Path(f"/dev/shm/ungil-heap-{os.geteuid()}-{name}")


def test_a_process_of_its_own_finds_a_heap_by_its_name_and_it_outlives_its_maker(
    name: str,
) -> None:
    code = (
        "import sys; from ungil import share; "
        "share.Heap(sys.argv[1], max_size=1 << 22).root['from'] = ['afar']"
    )
    subprocess.run([sys.executable, "-c", code, name], check=True)
    heap = share.Heap.open(name)
    found: share.list[Any] = heap.root["from"]
    assert isinstance(found, share.list)
    assert found[:] == ["afar"]
    assert (heap.name, heap.max_size) == (name, SIZE)
    assert path_of(name).stat().st_mode & 0o777 == 0o600


def test_opened_twice_it_is_the_same_heap(name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    again = share.Heap.open(name)
    assert again == heap
    assert again.root is heap.root
    again.root["mine"] = heap.share([1])


def test_handles_lead_to_it_by_its_name_and_without_it_as_long_as_their_sender_lives(
    name: str,
) -> None:
    heap = share.Heap(name, max_size=SIZE)
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)['seen'] = 1"
    for place, seen in ((name.encode(), 1), (b"/proc/", 2)):
        pickled = pickle.dumps(heap.root)
        assert place in pickled
        subprocess.run([sys.executable, "-c", code], input=pickled, check=True)
        assert heap.root["seen"] == 1
        if seen == 1:
            heap.root.clear()
            heap.unlink()


def test_without_its_name_nobody_finds_it_and_who_has_it_keeps_it(name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    heap.unlink()
    with pytest.raises(FileNotFoundError, match=f"there is no heap named '{name}'"):
        share.Heap.open(name)
    heap.root["still"] = "here"
    other = share.Heap(name, max_size=SIZE)
    assert other != heap
    assert "still" not in other.root
    with pytest.raises(FileNotFoundError, match="has no heap that could be taken away"):
        heap.unlink()
    assert path_of(name).exists(), "it has taken the other one's name away"
    with pytest.raises(FileNotFoundError, match="the heap has no name"):
        share.Heap(max_size=SIZE).unlink()


def test_a_name_is_given_once(name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    with pytest.raises(FileExistsError, match=f"a heap named '{name}' already exists"):
        share.Heap(name, max_size=SIZE)
    assert heap.root is share.Heap.open(name).root


def test_a_name_that_is_no_text_is_refused() -> None:
    wrong: Any = b"name"
    for attempt in (share.Heap, share.Heap.open):
        with pytest.raises(TypeError, match="the name of a heap is a str, not b'name'"):
            attempt(wrong)


@pytest.mark.parametrize("wrong", [-1, 1 << 70, 0, "1G", 1e9])
def test_a_size_that_cannot_be_one_is_refused_in_a_sentence(wrong: Any) -> None:
    said = (
        "max_size=.* is not a whole number of bytes|a heap cannot have max_size=|a heap has between"
    )
    for name in None, "sized":
        with pytest.raises((TypeError, ValueError), match=said):
            share.Heap(name, max_size=wrong)


@pytest.mark.parametrize("wrong", ["", "a/b", "a b", "é", "a\0", "x" * 201, "a\n"])
def test_a_name_that_cannot_be_one_is_refused(wrong: str) -> None:
    for attempt in (share.Heap, share.Heap.open):
        with pytest.raises(ValueError, match="cannot be the name of a heap: a name has 1 to 200"):
            attempt(wrong)


def test_a_closed_heap_is_let_go_of_and_its_objects_are_not(name: str) -> None:
    with share.Heap(name, max_size=SIZE) as heap:
        root = heap.root
    heap.close()
    with pytest.raises(ValueError, match="the heap is closed"):
        _ = heap.root
    assert repr(heap) == f"<share.Heap '{name}' closed>"
    root["still"] = "here"
    assert share.Heap.open(name).root is root


def test_half_of_the_memory_is_the_size_unless_another_is_said() -> None:
    with share.Heap() as heap:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert heap.max_size == memory // 2
        assert repr(heap) == "<share.Heap>"
        assert heap.name is None


def test_a_heap_of_another_user_is_refused(name: str) -> None:
    share.Heap(name, max_size=SIZE).close()
    if os.geteuid() == 0:
        os.chown(path_of(name), 12345, -1)
        expected = "belongs to user 12345, not to you"
    else:
        # Only root can give a file away; to others it looks as one that cannot be opened.
        path_of(name).chmod(0)
        expected = "Permission denied"
    with pytest.raises(PermissionError, match=expected):
        share.Heap.open(name)


@pytest.mark.parametrize("mode", [0o660, 0o604, 0o666])
def test_a_heap_that_others_can_use_is_refused(name: str, mode: int) -> None:
    share.Heap(name, max_size=SIZE).close()
    path_of(name).chmod(mode)
    with pytest.raises(PermissionError, match=f"has mode {mode:o}: others than you can use it"):
        share.Heap.open(name)


@pytest.mark.parametrize("place", [0, 8], ids=["magic", "version"])
def test_a_heap_of_another_version_is_refused(name: str, place: int) -> None:
    share.Heap(name, max_size=SIZE).close()
    with path_of(name).open("r+b") as file:
        file.seek(place)
        file.write(struct.pack("=Q", 99))
    with pytest.raises(ValueError, match="is not a heap of this version of ungil"):
        share.Heap.open(name)


@pytest.mark.parametrize("length", [0, 100, 4096, SIZE])
def test_a_heap_that_was_cut_off_is_refused(name: str, length: int) -> None:
    share.Heap(name, max_size=SIZE).close()
    os.truncate(path_of(name), length)
    with pytest.raises(ValueError, match="is not a heap of this version of ungil, or was cut off"):
        share.Heap.open(name)


def test_what_is_no_heap_is_refused(name: str) -> None:
    path_of(name).mkdir(0o700)
    try:
        with pytest.raises(OSError, match="Is a directory"):
            share.Heap.open(name)
    finally:
        path_of(name).rmdir()
    path_of(name).touch(0o600)
    path_of(name).write_bytes(b"text" * 100_000)
    with pytest.raises(ValueError, match="is not a heap of this version of ungil"):
        share.Heap.open(name)
    path_of(name).unlink()
    path_of(name).symlink_to("/dev/shm/another")
    with pytest.raises(OSError, match="symbolic links"):
        share.Heap.open(name)


def test_a_damaged_heap_is_an_error_of_whoever_meets_the_damage(name: str) -> None:
    heap = share.Heap(name, max_size=SIZE)
    heap.root["a"] = [1]
    del heap
    with path_of(name).open("r+b") as file:
        file.seek(72)  # where the header says which object is the root
        file.write(struct.pack("=Q", SIZE * 8 + 16))
    heap = share.Heap.open(name)
    with pytest.raises(RuntimeError, match="the heap is damaged"):
        _ = heap.root
