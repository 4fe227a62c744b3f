"""Scales: where a value is on an axis, as a share of its length, and where the axis has ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ungil.lab.chart import Scale
from ungil.lab.units import NEVER

# Of a logarithmic axis on which something never came: where numbers end. Beyond is no number.
NUMBERS_END = 0.8
# Of a linear one: ticks at most.
MOST_TICKS = 4
# A logarithmic axis has labels at so many decades at most, for it may be as wide as a thumb.
MOST_DECADES = 4


class Axis(Protocol):
    """What both kinds of axes can say."""

    def place(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        ...

    @property
    def ticks(self) -> list[float]:
        """Values that have a label; NEVER is last if it has a place."""
        ...


@dataclass(frozen=True)
class Linear:
    """From zero, for a bar's length is its value."""

    most: float

    def place(self, value: float) -> float:
        return value / self.most

    @property
    def ticks(self) -> list[float]:
        step = 10 ** math.floor(math.log10(self.most))
        step *= next(it for it in (0.2, 0.5, 1, 2, 5) if self.most / (it * step) <= MOST_TICKS)
        return [number * step for number in range(math.floor(self.most / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Logarithmic:
    """Whole decades; what never came has a place of its own beyond the numbers."""

    first: int
    last: int
    has_never: bool

    def place(self, value: float) -> float:
        if value == NEVER:
            return 1.0
        if value <= 0:
            return 0.0
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return share * (NUMBERS_END if self.has_never else 1.0)

    @property
    def ticks(self) -> list[float]:
        step = -(-(self.last - self.first + 1) // (MOST_DECADES - self.has_never))
        numbers = [10.0**power for power in range(self.first, self.last + 1, step)]
        return [*numbers, NEVER] if self.has_never else numbers


def axis(scale: Scale, values: Iterable[float]) -> Axis:
    """An axis that has room for all of them."""
    every = list(values)
    numbers = [it for it in every if 0 < it < NEVER] or [1.0]
    if scale == "linear":
        return Linear(max(numbers))
    # A billionth more or less is of rounding.
    first = math.floor(math.log10(min(numbers)) + 1e-9)
    last = max(first + 1, math.ceil(math.log10(max(numbers)) - 1e-9))
    return Logarithmic(first, last, NEVER in every)
