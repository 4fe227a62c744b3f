"""Until when the tasks of a pool that have a time limit may run."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

# What may wait for a limit waits so long at most, and then looks again: the system's own waits take
# no more than some weeks.
_MOST_S = 3600.0


class Limit(NamedTuple):
    """The limit of a task that runs."""

    end_s: float
    number: int
    worker: int
    limit_s: float


class Limits:
    """One limit for each worker at most: that of the task that it began last.

    Whoever collects puts them in, and the warden takes them out.
    """

    def __init__(self) -> None:
        self._by_worker: dict[int, Limit] = {}
        self._lock = threading.Lock()

    def begin(self, worker: int, number: int, limit_s: float) -> None:
        """A worker has begun a task that may take so long."""
        end_s = time.monotonic() + limit_s
        with self._lock:
            self._by_worker[worker] = Limit(end_s, number, worker, limit_s)

    def forget(self, worker: int) -> None:
        """A worker has ended."""
        with self._lock:
            self._by_worker.pop(worker, None)

    def left_s(self) -> float | None:
        """Return how long to wait until one may be over; None if there is none."""
        with self._lock:
            if not self._by_worker:
                return None
            first_s = min(limit.end_s for limit in self._by_worker.values())
        return min(max(0.0, first_s - time.monotonic()), _MOST_S)

    def take_over(self) -> list[Limit]:
        """Take out those that are over."""
        now_s = time.monotonic()
        with self._lock:
            over = [limit for limit in self._by_worker.values() if limit.end_s <= now_s]
            for limit in over:
                del self._by_worker[limit.worker]
        return over
