"""Finding heaps from outside: those with a name, and those that some process has open.

A heap without a name is called PID/FILE here, as it is found under /proc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ungil.cli import proc
from ungil.errors import Error, UsageError
from ungil.share import heap_files


@dataclass(frozen=True)
class Found:
    """A heap, and where it can be opened."""

    name: str
    path: Path
    is_named: bool


def find_all() -> Iterator[Found]:
    """Yield all heaps of this user, those with a name first; each once.

    Error, after those with a name, if others cannot be looked for.
    """
    seen: set[tuple[int, int]] = set()
    for name in heap_files.names():
        path = heap_files.path_of(name)
        if (identity := _identity(path)) is not None:
            seen.add(identity)
            yield Found(name, path, is_named=True)
    if not proc.is_mounted():
        raise Error(f"ungil cannot look for heaps without a name: {proc.ABSENT}")
    folders = (folder.name for folder in Path("/proc").iterdir())
    for pid in sorted(int(name) for name in folders if name.isdecimal()):
        yield from _open_in(pid, seen)


def find(name: str) -> Found:
    """Return the heap with that name, or PID/FILE; UsageError if there is none."""
    pid, slash, file = name.partition("/")
    if not slash:
        return find_named(name)
    if not (pid.isdecimal() and file.isdecimal()):
        raise UsageError(f"{name!r} is neither the name of a heap nor PID/FILE of a process")
    path = Path(f"/proc/{pid}/fd/{file}")
    try:
        heap = heap_files.is_heap(path)
    except PermissionError:
        raise UsageError(f"process {pid} cannot be inspected: permission denied") from None
    except OSError:
        heap = False
    if not heap:
        raise UsageError(f"process {pid} has no heap open as file {file}")
    return Found(name, path, is_named=False)


def find_named(name: str) -> Found:
    """Return the heap with that name; UsageError if there is none."""
    if "/" in name:
        raise UsageError(
            f"{name!r} is not a name: a heap without one disappears with its last process"
        )
    try:
        path = heap_files.path_of(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if _identity(path) is None:
        raise UsageError(f"there is no heap named {name!r}")
    return Found(name, path, is_named=True)


def _open_in(pid: int, seen: set[tuple[int, int]]) -> Iterator[Found]:
    """The heaps that a process has open and that are not among those seen."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        opened = sorted(folder.iterdir(), key=lambda file: int(file.name))
    except OSError:
        return  # It is another user's, or has ended.
    for path in opened:
        try:
            if not heap_files.is_heap(path):
                continue
            stat = path.stat()
        except OSError:
            continue
        identity = (stat.st_dev, stat.st_ino)
        if stat.st_uid == os.geteuid() and identity not in seen:
            seen.add(identity)
            yield Found(f"{pid}/{path.name}", path, is_named=False)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.lstat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
