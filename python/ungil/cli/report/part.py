"""Which part of a trace to report: what `--from`, `--to` and `--last` mean."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from ungil._native import trace_span
from ungil.errors import UsageError
from ungil.formatting import digits, moment

SECOND_NS = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
A_LENGTH = re.compile(r"(\d+\.?\d*|\.\d+) ?([a-z]*)")
A_TIME_OF_DAY = re.compile(r"\d\d?:\d\d(:\d\d(\.\d+)?)?")


@dataclass(frozen=True)
class Extent:
    """From the start of a trace to its end, in nanoseconds of the clock of its events."""

    start_ns: int
    end_ns: int
    unix_ns: int | None
    """When it began, in nanoseconds since 1970; None if the trace does not tell."""
    cut: str | None = None
    """A sentence about a trace that was cut off; None if it is whole."""

    @classmethod
    def of(cls, trace: str) -> Extent:
        """That of a trace file. Raises what `_native.read_trace` does."""
        return cls(*trace_span(trace))

    def part(self, begin: str | None, end: str | None, last: str | None) -> tuple[int, int]:
        """Begin and end of the part that the options name, in nanoseconds as above.

        Raises UsageError, in one sentence, for what is no moment, or is not in the trace.
        """
        # The last word of a trace is in its last part, as in the whole report.
        beyond_ns = self.end_ns + 1
        if last is not None:
            length_s = _length(last)
            if length_s is None or length_s <= 0:
                raise UsageError(f"--last {last!r} is not a duration such as 30s or 5m")
            return max(beyond_ns - round(length_s * SECOND_NS), self.start_ns), beyond_ns
        begin_ns = self.start_ns if begin is None else self._moment("--from", begin)
        end_ns = beyond_ns if end is None else min(self._moment("--to", end), beyond_ns)
        if begin_ns > self.end_ns:
            raise UsageError(
                f"--from {begin!r} is after the end of the trace, which {self._extent()}"
            )
        if begin_ns >= end_ns:
            what = f"--to {end!r} is not after " + (f"--from {begin!r}" if begin else "the start")
            raise UsageError(f"{what} of the trace" if not begin else what)
        return max(begin_ns, self.start_ns), end_ns

    def _moment(self, option: str, text: str) -> int:
        seconds = _length(text)
        if seconds is not None:
            return self.start_ns + round(seconds * SECOND_NS)
        if A_TIME_OF_DAY.fullmatch(text):
            return self._time_of_day(option, text)
        try:
            # Without an offset it is local time.
            at = datetime.fromisoformat(text).astimezone()
        except (ValueError, OverflowError) as error:
            raise UsageError(
                f"{option} {text!r} is not a point in time: give seconds from the start (12.5), a "
                "time (12:03:41) or a date and time (2026-01-31T12:03:41)"
            ) from error
        return self._at(option, text, at)

    def _time_of_day(self, option: str, text: str) -> int:
        """The first such time that is not before the trace began, by a second at least."""
        start = self._start(option, text)
        hour, minute, second = [*text.split(":"), "0"][:3]
        try:
            of_day = time(int(hour), int(minute), int(float(second)))
        except ValueError as error:
            raise UsageError(f"{option} {text!r} is no time of day") from error
        fraction = timedelta(seconds=float(second) % 1)
        for day in (start.date(), start.date() + timedelta(days=1)):
            at = _local(day, of_day) + fraction
            # Who types whole seconds means the second in which the trace began, too.
            if at >= start - timedelta(seconds=1):
                return self._at(option, text, at)
        return self._at(option, text, _local(start.date(), of_day) + fraction)

    def _at(self, option: str, text: str, at: datetime) -> int:
        # In whole numbers: the report says this very moment, and would round it down otherwise.
        since_1970_us = (at - EPOCH) // timedelta(microseconds=1)
        at_ns = self.start_ns + 1_000 * since_1970_us - self._unix_ns(option, text)
        if not self.start_ns - SECOND_NS <= at_ns <= self.end_ns + SECOND_NS:
            raise UsageError(f"{option} {text!r} is not in the trace, which {self._extent()}")
        return at_ns

    def _start(self, option: str, text: str) -> datetime:
        return datetime.fromtimestamp(self._unix_ns(option, text) / SECOND_NS).astimezone()

    def _unix_ns(self, option: str, text: str) -> int:
        if self.unix_ns is None:
            raise UsageError(
                f"the trace lacks the time of day, so {option} {text!r} cannot be found in it: "
                "give seconds from its start"
            )
        return self.unix_ns

    def _extent(self) -> str:
        length_s = (self.end_ns - self.start_ns) / SECOND_NS
        if self.unix_ns is None:
            return f"is {digits(length_s)} s long"
        start = datetime.fromtimestamp(self.unix_ns / SECOND_NS).astimezone()
        end = start + timedelta(seconds=length_s)
        return f"is {digits(length_s)} s long, from {moment(start)} to {moment(end, start.date())}"


def _local(day: date, of_day: time) -> datetime:
    return datetime.combine(day, of_day).astimezone()


def _length(text: str) -> float | None:
    """`12`, `12.5`, `30s`, `5m`, `1h` in seconds; None if it is none of these."""
    match = A_LENGTH.fullmatch(text.strip())
    if match is None or match[2] not in UNITS:
        return None
    seconds = float(match[1]) * UNITS[match[2]]
    return seconds if math.isfinite(seconds) else None
