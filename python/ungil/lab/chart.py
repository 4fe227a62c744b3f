"""Charts as data: what is shown, in which unit, beside what. `drawing` makes pictures of them.

A chart is some panels that share their axes. Whose figures a mark shows is its kind, and only that
has a colour: grey and a diamond for what was published, orange and a circle for an interpreter as
it is, green and a square for the same with ungil. What else differs is told by panels and labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ungil.lab.units import Unit

Kind = Literal["published", "stock", "ungil"]
"""Whose figures: the text's, this machine's, this machine's with ungil."""

Scale = Literal["linear", "log"]
"""On a linear one values are bars from zero; on a logarithmic one, which has no zero, dots."""


@dataclass(frozen=True)
class Mark:
    """A value in a row."""

    value: float
    kind: Kind
    is_variant: bool = False
    """The same kind under another condition, such as on one core: drawn hollow."""


@dataclass(frozen=True)
class Row:
    """A label, and one value or two that are compared."""

    label: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Rows:
    """A panel of rows."""

    title: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Ranked:
    """Values in rows."""

    title: str
    alternative: str
    """The same in a sentence or two, for whoever does not see it."""
    panels: Sequence[Rows]
    unit: Unit
    scale: Scale
    reference: float | None = None
    """A value that all are to be compared with."""
    reference_name: str = ""


@dataclass(frozen=True)
class Line:
    """Values over a number, such as that of threads; None where nothing was measured."""

    name: str
    kind: Kind
    values: Sequence[float | None]
    is_variant: bool = False


@dataclass(frozen=True)
class Lines:
    """A panel of lines."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Curves:
    """How values change with a number."""

    title: str
    alternative: str
    panels: Sequence[Lines]
    numbers: Sequence[int]
    """What the values of every line are over."""
    numbers_name: str
    unit: Unit
    scale: Scale


@dataclass(frozen=True)
class Hold:
    """Thread 1 or 2, and from when to when it held, in milliseconds."""

    thread: int
    begin_ms: float
    end_ms: float


@dataclass(frozen=True)
class Strip:
    """Who held when."""

    label: str
    kind: Kind
    holds: Sequence[Hold]


@dataclass(frozen=True)
class Strips:
    """A panel of strips."""

    title: str
    strips: Sequence[Strip]


@dataclass(frozen=True)
class Timeline:
    """Who held when, all beside the same time."""

    title: str
    alternative: str
    panels: Sequence[Strips]
    length_ms: float


Chart = Ranked | Curves | Timeline
