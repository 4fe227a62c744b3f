"""Units of what charts show: a value as people read it, in the unit that fits.

A chart has one unit, and a value of it is written the same at a mark, on an axis and in a title.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ungil.formatting import at_most_three_digits

NEVER = math.inf
"""A value that was waited for and did not come."""


@dataclass(frozen=True)
class Unit:
    """How the values of a chart are written."""

    written: Callable[[float], str]
    short: Callable[[float], str] | None = None
    """The same on an axis, where there is less room."""

    def __call__(self, value: float) -> str:
        """With at most three digits and its unit; "never" for NEVER."""
        return "never" if value == NEVER else self.written(value)

    def tick(self, value: float) -> str:
        """As an axis says it."""
        return self(value) if self.short is None or value == NEVER else self.short(value)


def _seconds(value_s: float) -> str:
    """From 1 s on in seconds, below in milliseconds: nobody has to count zeros."""
    if value_s == 0:
        return "0"
    # What would be rounded up to 1000 ms is 1 s.
    if value_s >= 0.9995:
        return f"{at_most_three_digits(value_s)} s"
    return f"{at_most_three_digits(value_s * 1e3)} ms"


def _count(value: float) -> str:
    if value >= 999_500:
        return f"{value / 1e6:.3g} million"
    return at_most_three_digits(value)


def _short_count(value: float) -> str:
    for factor, letter in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return at_most_three_digits(value)


SECONDS = Unit(_seconds)
COUNT = Unit(_count, _short_count)
TIMES = Unit(lambda value: f"{value:.2f}x" if value else "0")
PERCENT = Unit(lambda value: f"{value:.0f} %")
