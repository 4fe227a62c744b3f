"""The counters of the whole process, by group of threads, as both exporters read them."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from operator import add

from ungil import _native
from ungil.metrics._installed import call_in_children
from ungil.metrics._thread_groups import group_threads, regroup


@dataclass(frozen=True, slots=True)
class GroupCounters:
    """What the threads of one group did since counting began, those that have ended included."""

    threads: str
    waits: int
    waited_ns: int
    holds: int
    held_ns: int
    voluntary: int
    forced: int
    drop_requests: int
    running: int
    """how many threads of the group run"""
    waiting: int
    """how many of them wait for the GIL at this moment"""


class ProcessCounters:
    """Reads the counters. None of them ever falls."""

    def __init__(self, threads: Mapping[str, str] | None) -> None:
        """Count this process; `threads` as `GilCollector` has it."""
        self._names = group_threads(threads)
        self._begin_anew()
        call_in_children(self._begin_anew)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._highest = [[0] * 7 for _ in self._names]

    def read(self) -> list[GroupCounters]:
        """The counters of each group. Raises HookError where they cannot be read."""
        regroup()
        with self._lock:
            unseen, other, *named = _native.gil_totals()
            # A thread that ended before anybody looked. One that has just begun is told next time.
            others = tuple(map(add, unseen, other))
            return list(map(self._group, range(len(self._names)), [others, *named]))

    def _group(self, number: int, numbers: tuple[int, ...]) -> GroupCounters:
        # What is read includes waits and holds that go on. One that goes on may end a tick shorter
        # than it was read, when the length of a tick is measured anew.
        *sums, running, waiting = numbers
        highest = list(map(max, sums, self._highest[number]))
        self._highest[number] = highest
        waits, waited_ns, holds, held_ns, voluntary, forced, drop_requests = highest
        return GroupCounters(
            self._names[number],
            waits=waits,
            waited_ns=waited_ns,
            holds=holds,
            held_ns=held_ns,
            voluntary=voluntary,
            forced=forced,
            drop_requests=drop_requests,
            running=running,
            waiting=waiting,
        )
