"""Durations as people write them: `20ms`, `1.5s`, `1min`."""

from __future__ import annotations

import re

from ungil.errors import UsageError

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
"""Each unit in nanoseconds."""


def parse_duration(text: str) -> int:
    """The nanoseconds that `text` writes: a number above zero with a unit of `UNITS_NS`.

    UsageError, which names `text`, for anything else.
    """
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]+)\s*", text)
    factor = UNITS_NS.get(written[2]) if written else None
    number = round(float(written[1]) * factor) if written and factor else 0
    if not number:
        raise UsageError(f"{text!r} is not a duration; write one like 20ms, 1.5s or 1min")
    return number
