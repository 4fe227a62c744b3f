"""Shared buffers, seen from Python."""

import copy
import os
import pickle
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ungil import share

# It comes without types.
pa: Any = import_module("pyarrow")

HEAP = share.Heap(max_size=1 << 28)


def shared(given: Any, **options: Any) -> share.buffer:
    made = HEAP.share(share.buffer(given, **options))
    assert isinstance(made, share.buffer)
    return made


@given(st.binary(max_size=300), st.integers(-310, 310), st.integers(-310, 310))
def test_a_buffer_equals_its_bytes(data: bytes, start: int, stop: int) -> None:
    b = shared(data)
    assert b == data
    assert data == b
    assert bytes(b) == b.tobytes() == copy.copy(b) == copy.deepcopy(b) == data
    assert len(b) == b.nbytes == len(data)
    assert b[start:stop] == data[start:stop]
    assert list(b) == list(data)
    assert b != data + b"x"
    assert b == shared(data)
    if data:
        assert b[-1] == data[-1]


def test_a_buffer_is_read_only_unless_it_is_said() -> None:
    b = shared(b"abc")
    assert b.readonly
    for write in (lambda: b.__setitem__(0, 1), lambda: memoryview(b).__setitem__(0, 1)):
        with pytest.raises(TypeError, match="read-only"):
            write()
    with pytest.raises(ValueError, match="read-only"):
        np.frombuffer(memoryview(b), "u1")[0] = 1
    writable = shared(b"abc", writable=True)
    writable[1] = ord("x")
    writable[2:] = b"y"
    assert writable == b"axy"
    zeros = shared(10)
    assert not zeros.readonly
    assert zeros == bytes(10)
    with pytest.raises(TypeError, match="unhashable"):
        hash(b)


def test_all_processes_read_one_copy_and_files_and_sockets_take_it(tmp_path: Path) -> None:
    data = os.urandom(1 << 20)
    HEAP.root["b"] = share.buffer(data)
    b: share.buffer = HEAP.root["b"]
    assert pickle.loads(pickle.dumps(b)) is b
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.sendall(b)
        os._exit(0)
    received = bytearray()
    while len(received) < len(data):
        received += there.recv(1 << 16)
    assert os.waitpid(child, 0)[1] == 0
    assert received == data
    (tmp_path / "b").write_bytes(b)
    assert (tmp_path / "b").read_bytes() == b
    target = HEAP.share(share.buffer(len(data)))
    with (tmp_path / "b").open("rb") as file:
        assert file.readinto(target) == len(data)
    assert target == b
    here.close()
    there.close()
    del HEAP.root["b"]


def test_a_large_buffer_that_goes_gives_its_memory_back() -> None:
    def used() -> int:
        return HEAP.statistics().used_bytes

    b = shared(8 << 20)
    view = memoryview(b)
    before = used()
    del b
    assert used() == before
    view.release()
    assert used() <= before - (8 << 20)


def test_arrow_reads_tables_where_they_are() -> None:
    names = pa.array([f"row {number}" for number in range(1000)])
    table = pa.table({"x": pa.array(range(1000)), "name": names})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    HEAP.root["table"] = share.buffer(sink.getvalue())
    b: share.buffer = HEAP.root["table"]
    wrapped = pa.py_buffer(b)
    read = pa.ipc.open_stream(wrapped).read_all()
    assert read == table
    # Its columns are in the shared memory, and keep it.
    first = read.column("x").chunk(0).buffers()[1]
    assert wrapped.address <= first.address < wrapped.address + wrapped.size
    del HEAP.root["table"], b, wrapped
    HEAP.gc()
    assert read.column("x")[999].as_py() == 999


@pytest.mark.parametrize("wrong", ["text", 1.5, [1, 2], -1])
def test_a_mistake_is_told_in_one_sentence(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"(make a buffer from|a buffer has 0)"):
        share.buffer(wrong)
    with pytest.raises(RuntimeError, match="not in a heap yet"):
        len(share.buffer(b"abc"))
    with pytest.raises(TypeError, match=r"share\.buffer\(\.\.\.\)"):
        HEAP.root["x"] = bytearray(b"abc")
    assert "unshared" in repr(share.buffer(3))
    assert repr(shared(b"abc")) == "<share.buffer of 3 bytes>"
