"""Durations as people write them: 50ms, 2s, 1min."""

from __future__ import annotations

import re

from ungil.errors import UsageError

UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60 * 1_000_000_000,
    "h": 3_600 * 1_000_000_000,
}
"""How many nanoseconds each is."""


def parse_duration(text: str, what: str) -> int:
    """The duration that `text` names, in nanoseconds: a number and a unit, "1.5s".

    UsageError for anything else, or for one that is not longer than nothing; `what` begins its
    sentence.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]+)\s*", text)
    if match is None or match[2] not in UNITS:
        raise UsageError(
            f"{what}: {text!r} is not a duration; write a number and its unit, as 50ms, 2s or 1min"
        )
    duration = round(float(match[1]) * UNITS[match[2]])
    if duration <= 0:
        raise UsageError(f"{what}: {text!r} is not above zero")
    return duration
