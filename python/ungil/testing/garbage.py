"""Python's garbage collector, in a test run: what it did is not the test's doing.

A full collection looks at everything that pytest, its plugins and all tests before have made. It
keeps the GIL for tens of milliseconds, in whatever test it happens.
"""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from ungil.limits import Hold, Judged, Wait


@dataclass(frozen=True)
class Collection:
    """One run of the collector; times are CLOCK_MONOTONIC's, in ns."""

    tid: int
    start_ns: int
    end_ns: int
    cpu_ns: int
    """What its thread ran in it."""


class Collections:
    """Those of a stretch of time."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[int, int]] = {}
        self._ended: list[Collection] = []

    def notice(self, notices: bool) -> None:
        """Whether they are noticed from now on."""
        if notices and self._called not in gc.callbacks:
            gc.callbacks.append(self._called)
        elif not notices and self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
            self._begun.clear()

    def _called(self, phase: str, _info: dict[str, Any]) -> None:
        tid = threading.get_native_id()
        now = time.monotonic_ns(), time.thread_time_ns()
        if phase == "start":
            self._begun[tid] = now
        elif begun := self._begun.pop(tid, None):
            self._ended.append(Collection(tid, begun[0], now[0], now[1] - begun[1]))

    def without(self, judged: Judged) -> Judged:
        """What was judged without the collections, which are forgotten then."""
        ended, self._ended = self._ended, []
        return replace(
            judged,
            holds=[_hold_without(hold, ended) for hold in judged.holds],
            waits=[_wait_without(wait, ended) for wait in judged.waits],
        )


def _hold_without(hold: Hold, ended: list[Collection]) -> Hold:
    its = [it for it in ended if it.tid == hold.tid]
    return replace(hold, own_ms=max(0.0, hold.own_ms - _ran_ms(its, hold)))


def _wait_without(wait: Wait, ended: list[Collection]) -> Wait:
    return replace(wait, own_ms=max(0.0, wait.own_ms - _ran_ms(ended, wait)))


def _ran_ms(ended: list[Collection], within: Hold | Wait) -> float:
    """What the collections ran that were in a hold, or in a wait, at least in part."""
    meets = (it for it in ended if it.start_ns < within.end_ns and it.end_ns > within.start_ns)
    return sum(it.cpu_ns for it in meets) / 1e6
