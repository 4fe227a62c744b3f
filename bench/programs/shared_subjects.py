"""What is shared in each way that is compared: how it is made, and how it is used.

A subject is made by a context manager, from what it has to hold. What that yields is called in each
process that uses the subject, and returns it there.
"""

import multiprocessing
import multiprocessing.shared_memory
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

Attach = Callable[[], Any]
Make = Callable[[Any], AbstractContextManager[Attach]]
FORK = multiprocessing.get_context("fork")
# Room in what has to be told its size beforehand, in bytes.
ROOM = 1 << 24


@contextmanager
def builtin(content: Any) -> Iterator[Attach]:
    """Shared by nobody: a forked process has its own."""
    yield lambda: content


@contextmanager
def ungil(content: Any) -> Iterator[Attach]:
    """A shared object, which forked processes have, too."""
    from ungil import share

    shared = share.Heap(max_size=1 << 30).share(content)
    yield lambda: shared


@contextmanager
def ungil_struct(content: int) -> Iterator[Attach]:
    """An object of a shared class."""
    from shared_struct import Shared

    from ungil import share

    shared = share.Heap(max_size=1 << 30).share(Shared(content))
    yield lambda: shared


@contextmanager
def ungil_lock(_: None) -> Iterator[Attach]:
    """A lock in a heap, which outlives who holds it."""
    from ungil import share

    shared = share.Heap(max_size=1 << 30).share(share.Lock())
    yield lambda: shared


@contextmanager
def manager_dict(content: "dict[str, int]") -> Iterator[Attach]:
    """In the manager's process."""
    with FORK.Manager() as manager:
        shared = manager.dict(content)
        yield lambda: shared


@contextmanager
def manager_list(content: "list[int]") -> Iterator[Attach]:
    """In the manager's process."""
    with FORK.Manager() as manager:
        shared = manager.list(content)
        yield lambda: shared


@contextmanager
def ultradict(content: "dict[str, int]") -> Iterator[Attach]:
    """A copy in each process, and a stream of changes."""
    from UltraDict import UltraDict

    # Inherited by forks, with its lock: who attaches by name gets a lock of its own. It removes its
    # memory itself, at exit.
    shared = UltraDict(content, buffer_size=ROOM)
    yield lambda: shared


@contextmanager
def shared_memory_dict(content: "dict[str, int]") -> Iterator[Attach]:
    """Pickled whole for each access."""
    from shared_memory_dict import SharedMemoryDict

    # Each access copies all of the memory, used or not.
    shared = SharedMemoryDict(name=f"bench{os.getpid()}", size=2 * len(pickle.dumps(content)))
    shared.update(content)
    yield lambda: shared
    shared.shm.close()
    shared.shm.unlink()


@contextmanager
def lmdb(content: "dict[str, int]") -> Iterator[Attach]:
    """A file in memory; bytes only, so that the user converts keys and values."""
    import lmdb

    # On tmpfs where there is one, and never written to a disk, as with all others.
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)

    def attach() -> lmdb.Environment:
        # Pages that a reader may still look at are not reused, so it needs more than it holds.
        return lmdb.open(folder, map_size=64 * ROOM, sync=False, metasync=False)

    try:
        with attach() as environment, environment.begin(write=True) as transaction:
            for key, value in content.items():
                transaction.put(key.encode(), b"%d" % value)
        yield attach
    finally:
        shutil.rmtree(folder)


@contextmanager
def shareable_list(content: "list[int]") -> Iterator[Attach]:
    """Of multiprocessing: of a fixed length."""
    shared = multiprocessing.shared_memory.ShareableList(content)
    yield lambda: shared
    shared.shm.close()
    shared.shm.unlink()


@contextmanager
def locked_array(content: "list[int]") -> Iterator[Attach]:
    """Of multiprocessing, with its lock."""
    shared = FORK.Array("q", content)
    yield lambda: shared


@contextmanager
def raw_array(content: "list[int]") -> Iterator[Attach]:
    """Of multiprocessing, without a lock."""
    shared = FORK.RawArray("q", content)
    yield lambda: shared


@dataclass(frozen=True)
class Subject:
    """Something shared, and the statement that uses it."""

    make: Make
    statement: str
    """Of the variables `subject` and `key`."""


GET, SET = "subject[key]", "subject[key] = 12345"
LMDB_GET = "with subject.begin() as t: int(t.get(key.encode()))"
LMDB_SET = "with subject.begin(write=True) as t: t.put(key.encode(), b'%d' % 12345)"


def _dicts(statement: str, lmdb_statement: str) -> "dict[str, Subject]":
    makers = {
        "builtin": builtin,
        "ungil": ungil,
        "Manager": manager_dict,
        "UltraDict": ultradict,
        "shared-memory-dict": shared_memory_dict,
    }
    subjects = {name: Subject(make, statement) for name, make in makers.items()}
    return {**subjects, "lmdb": Subject(lmdb, lmdb_statement)}


def _lists(statement: str) -> "dict[str, Subject]":
    makers = {
        "builtin": builtin,
        "ungil": ungil,
        "Manager": manager_list,
        "ShareableList": shareable_list,
        "mp.Array": locked_array,
        "mp.RawArray": raw_array,
    }
    return {name: Subject(make, statement) for name, make in makers.items()}


class Slots:
    """What an attribute is compared with."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        """With one attribute."""
        self.value = value


@contextmanager
def slots(content: int) -> Iterator[Attach]:
    """An ordinary object."""
    plain = Slots(content)
    yield lambda: plain


@contextmanager
def manager_namespace(content: int) -> Iterator[Attach]:
    """In the manager's process."""
    with FORK.Manager() as manager:
        shared = manager.Namespace(value=content)
        yield lambda: shared


@contextmanager
def locked_value(content: int) -> Iterator[Attach]:
    """Of multiprocessing, with its lock."""
    shared = FORK.Value("q", content)
    yield lambda: shared


@contextmanager
def raw_value(content: int) -> Iterator[Attach]:
    """Of multiprocessing, without a lock."""
    shared = FORK.RawValue("q", content)
    yield lambda: shared


@contextmanager
def manager_lock(_: None) -> Iterator[Attach]:
    """In the manager's process."""
    with FORK.Manager() as manager:
        shared = manager.Lock()
        yield lambda: shared


@contextmanager
def mp_lock(_: None) -> Iterator[Attach]:
    """A POSIX semaphore."""
    shared = FORK.Lock()
    yield lambda: shared


@contextmanager
def thread_lock(_: None) -> Iterator[Attach]:
    """For the threads of one process only."""
    plain = threading.Lock()
    yield lambda: plain


def _attributes(statement: str) -> "dict[str, Subject]":
    makers = {
        "builtin": slots,
        "ungil": ungil_struct,
        "Manager": manager_namespace,
        "mp.Value": locked_value,
        "mp.RawValue": raw_value,
    }
    return {name: Subject(make, statement) for name, make in makers.items()}


class Colour(Enum):
    """A member of it is what is read."""

    RED = 1
    GREEN = 2


# Values of a dict that are more than a number, by their place.
VALUES: "dict[str, Callable[[int], Any]]" = {
    "nested get": lambda number: {"y": 1_000 + number},
    "struct get": lambda number: Slots(1_000 + number),
    "datetime get": lambda number: (
        datetime(2026, 11, 1, tzinfo=UTC) + timedelta(hours=number % 100)
    ),
    "enum get": lambda number: list(Colour)[number % 2],
    "tuple get": lambda number: (number % 100, 2),
}


@contextmanager
def ungil_structs(content: "dict[str, Slots]") -> Iterator[Attach]:
    """A shared dict with objects of a shared class."""
    from shared_struct import Shared

    from ungil import share

    heap = share.Heap(max_size=1 << 30)
    shared = heap.share({name: Shared(plain.value) for name, plain in content.items()})
    yield lambda: shared


def _values(statement: str, shared: Make = ungil) -> "dict[str, Subject]":
    makers = {"builtin": builtin, "ungil": shared, "Manager": manager_dict}
    return {name: Subject(make, statement) for name, make in makers.items()}


LOCK = "subject.acquire(); subject.release()"
# By operation and way.
OPERATIONS = {
    "dict get": _dicts(GET, LMDB_GET),
    "dict set": _dicts(SET, LMDB_SET),
    "list get": _lists(GET),
    "list set": _lists(SET),
    "attribute get": _attributes("subject.value"),
    "attribute set": _attributes("subject.value = 12345"),
    "nested get": _values("subject[key]['y']"),
    "struct get": _values("subject[key].value", ungil_structs),
    "datetime get": _values(GET),
    "enum get": _values(GET),
    "tuple get": _values(GET),
    "index of a tuple": {
        "builtin": Subject(builtin, "subject.index(key)"),
        "ungil": Subject(ungil, "subject.index(key)"),
        "Manager": Subject(manager_list, "subject.index(key)"),
    },
    "lock and unlock": {
        "builtin": Subject(thread_lock, LOCK),
        "ungil": Subject(ungil_lock, LOCK),
        "mp.Lock": Subject(mp_lock, LOCK),
        "Manager": Subject(manager_lock, LOCK),
    },
}


@contextmanager
def manager_counter(content: "dict[str, int]") -> Iterator[Attach]:
    """A dict of the manager's with a lock of the manager's."""
    with FORK.Manager() as manager:
        shared = manager.dict(content), manager.Lock()
        yield lambda: shared


@contextmanager
def value_counter(content: "dict[str, int]") -> Iterator[Attach]:
    """A value of multiprocessing, with its lock."""
    shared = FORK.Value("q", content["hits"])
    yield lambda: shared


# Each adds 1 to what all processes count in. The second is how the count is read.
COUNTERS = {
    "builtin": (Subject(builtin, "subject['hits'] += 1"), "subject['hits']"),
    "ungil": (Subject(ungil, "subject.incr('hits')"), "subject['hits']"),
    "mp.Value": (
        Subject(value_counter, "with subject.get_lock(): subject.value += 1"),
        "subject.value",
    ),
    "Manager": (
        Subject(manager_counter, "with subject[1]: subject[0]['hits'] += 1"),
        "subject[0]['hits']",
    ),
    "UltraDict": (
        Subject(ultradict, "with subject.lock: subject['hits'] += 1"),
        "subject['hits']",
    ),
    "lmdb": (
        Subject(
            lmdb,
            "with subject.begin(write=True) as t: "
            "t.put(b'hits', b'%d' % (int(t.get(b'hits')) + 1))",
        ),
        "int(subject.begin().get(b'hits'))",
    ),
}
