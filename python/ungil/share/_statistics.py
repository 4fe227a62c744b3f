"""What is in a heap, who uses it, and what a collection has freed, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Collected:
    """What a garbage collection of a heap did."""

    freed_bytes: int
    """bytes that could no longer be reached"""
    dead: int
    """how many dead processes it cleaned up after"""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of one type is in a heap."""

    objects: int
    """how many objects of the type can be reached"""
    bytes: int
    """how many bytes these objects take, without what they refer to"""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a heap, counted while all its other processes were paused."""

    types: dict[str, Usage]
    """the objects by type: "dict", "list", "set", "deque", "struct", "sync" (locks and all else of
    `threading`), "queue", "array", "buffer", and "gone" (made in a block of `atomic()` that failed,
    and still held)"""
    taken_bytes: int
    """bytes that are taken, reachable or not"""
    lost_bytes: int
    """bytes of these that `Heap.gc()` would free"""


@dataclass(frozen=True, slots=True)
class AttachedProcess:
    """A process that is attached to a heap, or was when it died."""

    pid: int
    """its process id, in its own namespace"""
    alive: bool
    """False for one that has died, until another process cleans up after it"""
    since: int
    """when it was attached, in seconds since 1970"""
    threads: int
    """how many of its threads have changed the heap"""


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock of a heap that is held."""

    guards: str
    """what it guards: "the collector", "growing", "transactions", or an object by its type and
    place, of which it is the monitor"""
    pid: int | None
    """the process that holds it; None for one that has died and was cleaned up after"""
    alive: bool
    """whether that process lives; if not, the next process that wants the lock gets it"""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is in a heap, who else is attached to it, and who holds which lock."""

    used_bytes: int
    """bytes of memory that the heap takes now"""
    max_bytes: int
    """bytes of objects to which it can grow: `Heap.max_size` without what the heap itself takes"""
    created: int
    """when it was made, in seconds since 1970"""
    deaths: int
    """how many processes have died while they were attached, since then"""
    collections: int
    """how often its garbage was collected, since then"""
    processes: tuple[AttachedProcess, ...]
    """the other processes that are attached to it: the one that asks is left out"""
    contents: Contents | None
    """what is in it; None if that was not asked for, or a process was busy all the time"""
    locks: tuple[HeldLock, ...]
    """the locks that are held; those of objects only if there are `contents`"""


def statistics_of(told: dict[str, Any]) -> Statistics:
    """The statistics that the native part tells."""
    contents: dict[str, Any] | None = told["contents"]
    fields: dict[str, Any] = {
        **told,
        "processes": tuple(AttachedProcess(**process) for process in told["processes"]),
        "contents": None if contents is None else _contents_of(contents),
        "locks": tuple(HeldLock(**lock) for lock in told["locks"]),
    }
    return Statistics(**fields)


def _contents_of(told: dict[str, Any]) -> Contents:
    types = {name: Usage(**usage) for name, usage in told["types"].items()}
    fields: dict[str, Any] = {**told, "types": types}
    return Contents(**fields)
