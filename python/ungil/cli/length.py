"""Lengths of time as people type them, for all commands."""

from __future__ import annotations

import math
import re

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
A_LENGTH = re.compile(r"(\d+\.?\d*|\.\d+) ?([a-zµ]*)")


def length(text: str, *, unit: str | None = None) -> float | None:
    """`50ms`, `12.5s`, `5m`, `2min`, `1h` in seconds; None if it is none of these.

    Without a unit it is one of `unit`, if that is given, and none of these otherwise.
    """
    match = A_LENGTH.fullmatch(text.strip())
    if match is None:
        return None
    factor = UNITS.get(match[2] or unit or "")
    seconds = math.nan if factor is None else float(match[1]) * factor
    return seconds if math.isfinite(seconds) else None
