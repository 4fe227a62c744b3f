"""Words that findings have in common: whose figure it is, and how two compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ungil.formatting import digits
from ungil.lab.chart import Kind, Mark, Row

# What differs by less is the same: runs of one and the same program differ as much.
SAME = 0.03
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def newest(
    pythons: Sequence[str],
    stock: Callable[[str], float | None],
    ungil: Callable[[str], float | None],
) -> str:
    """The newest interpreter with both figures, or at least with the first; "" if there is none.

    So one without a GIL, where ungil has nothing to say, does not hide the one that has.
    """
    newest_first = [python for python in reversed(pythons) if stock(python) is not None]
    both = (python for python in newest_first if ungil(python) is not None)
    return next(both, next(iter(newest_first), ""))


def row(label: str, value: float | None, kind: Kind) -> list[Row]:
    """A row of one mark; none if there is no value."""
    return [] if value is None else [Row(label, [Mark(value, kind)])]


def pair(label: str, stock: float | None, ungil: float | None) -> list[Row]:
    """A row of an interpreter, as it is and with ungil; none if neither is there."""
    marks: list[Mark] = []
    if stock is not None:
        marks.append(Mark(stock, "stock"))
    if ungil is not None:
        marks.append(Mark(ungil, "ungil"))
    return [Row(label, marks)] if marks else []


def joined(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`; without any, what is said then."""
    *first, last = [part for part in parts if part] or ["nothing was measured"]
    return f"{', '.join(first)} and {last}" if first else last


def longer(ratio: float) -> str:
    """How a time compares with another one: `28 % longer`, `as long as`, `6 % less`."""
    if abs(ratio - 1) <= SAME:
        return "no longer"
    return f"{abs(ratio - 1):.0%} {'longer' if ratio > 1 else 'less'}".replace("%", " %")


def times_as(now: float, other: float) -> str:
    """How much less the second is: `12 times less`, `about the same`, `1.5 times more`."""
    if min(now, other) <= 0 or abs(now / other - 1) <= SAME:
        return "about the same"
    many = max(now, other) / min(now, other)
    return f"{digits(many, 2)} times {'less' if other < now else 'more'}"


def number(count: int) -> str:
    """A small number as a word."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)
