"""Figures as the tables show them; a dash stands for what was not measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ungil.formatting import digits

NOTHING = "-"


def median(
    rounds: Sequence[Mapping[str, Any]], of: str | Callable[[Mapping[str, Any]], float]
) -> float | None:
    """The median of a figure, by its name or made of others, over rounds; None without any."""
    if not rounds:
        return None
    return statistics.median(one[of] if isinstance(of, str) else of(one) for one in rounds)


def ratio(one: float | None, other: float | None) -> float | None:
    """One over the other, None if either is missing or there is nothing to divide by."""
    return None if one is None or not other else one / other


def jain(shares: Iterable[float]) -> float:
    """Jain's index of fairness: 1 if all have the same, 1/n if one of n has everything.

    R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    values = list(shares)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def number(value: float | None, significant: int = 3) -> str:
    """With so many significant digits, or all of those before the point."""
    if value is None:
        return NOTHING
    return digits(value, significant) if value else "0"


def count(value: float | None) -> str:
    """A count."""
    return NOTHING if value is None else f"{value:,.0f}"


def times(value: float | None) -> str:
    """A ratio."""
    return NOTHING if value is None else f"{value:.2f}x"


def seconds(value: float | None) -> str:
    """Seconds."""
    return NOTHING if value is None else f"{number(value)} s"


def milliseconds(value_s: float | None) -> str:
    """Seconds as milliseconds."""
    return NOTHING if value_s is None else f"{number(value_s * 1e3)} ms"
