"""Limits for holds of the GIL and waits for it, and what is said of those that break them.

They judge what the holders did, not how late the machine was: `docs/testing.md` says how.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ungil.durations import parse_duration
from ungil.errors import UsageError
from ungil.formatting import duration

NEVER_MS = 1e12
"""Where nothing is judged: some thirty years."""


@dataclass(frozen=True)
class Hold:
    """A hold of the GIL that another thread waited for; times are CLOCK_MONOTONIC's, in ns."""

    pid: int
    gil: int
    tid: int
    name: str
    start_ns: int
    end_ns: int
    own_ms: float
    """For how long, at least, the holder ran or slept after another thread had asked."""
    cpu_ms: float | None
    """For how long it ran in the whole hold, if that is known."""
    stack: list[str]
    """Its Python stack, innermost frame first, if it was taken."""
    user_frame: str | None
    """The innermost frame of it that is neither Python's nor an installed package's."""
    stack_missing: str | None
    """Why there is no stack, in a clause in which "it" is the hold."""

    @property
    def line(self) -> str:
        """The line of code to look at, or why none is known."""
        if not self.stack:
            return f"(no line is known: {self.stack_missing})"
        if self.user_frame is None or self.user_frame == self.stack[0]:
            return f"in {self.stack[0]}"
        return f"in {self.stack[0]}, called from {self.user_frame}"

    def __str__(self) -> str:
        lasted_ms = (self.end_ns - self.start_ns) / 1e6
        text = f"{self.name} kept the GIL for {_ms(self.own_ms)} {self.line}"
        ran = "" if self.cpu_ms is None else f", of which the thread ran {_ms(self.cpu_ms)}"
        return f"{text}; the hold lasted {_ms(lasted_ms)}{ran}"


@dataclass(frozen=True)
class Wait:
    """A wait for the GIL; times are CLOCK_MONOTONIC's, in ns."""

    pid: int
    gil: int
    tid: int
    name: str
    start_ns: int
    end_ns: int
    own_ms: float
    """For how long, at least, the holders that it waited for ran or slept meanwhile."""
    culprit_tid: int | None
    culprit_name: str | None

    def __str__(self) -> str:
        lasted_ms = (self.end_ns - self.start_ns) / 1e6
        most = "" if self.culprit_name is None else f", most of it for {self.culprit_name}"
        return (
            f"{self.name} waited for the GIL while its holders ran or slept for {_ms(self.own_ms)}"
            f"{most}; the wait lasted {_ms(lasted_ms)}"
        )


@dataclass(frozen=True)
class Judged:
    """What ended in some stretch of time: those holds and waits that are told one by one."""

    holds: list[Hold]
    waits: list[Wait]
    waited_ms: float = 0.0
    """What all threads have waited."""
    own_ms: float = 0.0
    """How much of that the holders ran or slept."""

    @classmethod
    def read(cls, text: str, without: int | None = None) -> Judged:
        """Of the JSON of `Recorder.judged`, all but what the thread `without` did."""
        told: dict[str, Any] = json.loads(text)
        threads = [it for it in told["threads"] if it["tid"] != without]
        return cls(
            [Hold(**it) for it in told["holds"] if it["tid"] != without],
            [Wait(**it) for it in told["waits"] if it["tid"] != without],
            sum(it["waited_ms"] for it in threads),
            sum(it["own_ms"] for it in threads),
        )

    def __add__(self, later: Judged) -> Judged:
        return Judged(
            self.holds + later.holds,
            self.waits + later.waits,
            self.waited_ms + later.waited_ms,
            self.own_ms + later.own_ms,
        )


@dataclass(frozen=True)
class Limits:
    """How long a holder may keep the GIL, and a thread may wait for it; None is no limit."""

    max_hold_ns: int | None = None
    max_wait_ns: int | None = None
    max_hold: str | None = None
    """As it was written."""
    max_wait: str | None = None

    @classmethod
    def parse(
        cls,
        max_hold: str | None,
        max_wait: str | None,
        names: tuple[str, str] = ("max_hold", "max_wait"),
    ) -> Limits:
        """Limits written like `20ms`; UsageError if one is no duration, or there is none.

        `names` are what the user knows them by.
        """
        if max_hold is None and max_wait is None:
            raise UsageError("no limit was given; pass max_hold, max_wait, or both")
        hold_ns, wait_ns = _parsed(names[0], max_hold), _parsed(names[1], max_wait)
        return cls(hold_ns, wait_ns, max_hold, max_wait)

    @property
    def least_ms(self) -> tuple[float, float]:
        """From where on a recorder has to tell holds and waits one by one."""
        limits = (self.max_hold_ns, self.max_wait_ns)
        hold, wait = (NEVER_MS if ns is None else ns / 1e6 for ns in limits)
        return hold, wait

    def broken(self, judged: Judged) -> list[dict[str, Any]]:
        """The holds and waits that break them, the worst first, each as data with a sentence."""
        found: list[dict[str, Any]] = []
        for kind, limit_ns, written, all_of_them in (
            ("hold", self.max_hold_ns, self.max_hold, judged.holds),
            ("wait", self.max_wait_ns, self.max_wait, judged.waits),
        ):
            if limit_ns is None:
                continue
            limit = f"max_{kind} is {written}"
            worst = sorted(all_of_them, key=lambda it: -it.own_ms)
            found += [
                {"kind": kind, "limit": limit, "sentence": f"{it} ({limit})"} | asdict(it)
                for it in worst
                if it.own_ms > limit_ns / 1e6
            ]
        return found


def _parsed(name: str, text: str | None) -> int | None:
    """The nanoseconds of a limit; UsageError says which one is wrong."""
    return None if text is None else parse_duration(str(text), name)


def _ms(milliseconds: float) -> str:
    return duration(milliseconds / 1e3)
