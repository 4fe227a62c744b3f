"""What an experiment is: a question, what was published, and cells that measure it today.

An experiment is one module of `ungil.lab.experiments` with a constant `EXPERIMENT`. It plans
cells, and makes tables from results alone: from those of this run or of a file. What is said of
them and drawn is in `ungil.lab.findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ungil.errors import Error
from ungil.interpreters import Interpreter
from ungil.lab.chart import Kind
from ungil.lab.results import Results

Measured = dict[str, Any]
"""What a cell has measured: JSON, with the unit of each number at the end of its name."""


class Missing(Error):
    """A cell cannot be measured on this machine or interpreter: what is missing, what to do."""


class CellFailed(Error):
    """A cell that should have been measured was not: what went wrong."""


def missing(why: str) -> Measured:
    """What a cell measures that is known to lack something: raises Missing."""
    raise Missing(why)


@dataclass(frozen=True)
class Source:
    """The text that an experiment is from."""

    author: str
    year: int
    text: str
    """What kind of text it was, and what it is called."""


@dataclass(frozen=True)
class Figure:
    """One published figure."""

    what: str
    value: float
    unit: str
    """Such as "s"; "" for a count."""


@dataclass(frozen=True)
class Cell:
    """The smallest thing that is run and saved."""

    experiment: str
    interpreter: Interpreter | None
    """None if it is measured without a Python, such as goroutines."""
    variant: str
    measure: Callable[[], Measured]
    """Raises Missing or CellFailed, in one sentence."""
    seconds: float
    """About how long that takes."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it depends on besides, as JSON: sizes, seconds. With others it is another cell."""
    round: int = 1
    """Of variants that are compared, each is measured once a round, in turn."""

    @property
    def python(self) -> str:
        """The name of the interpreter, "" without one."""
        return "" if self.interpreter is None else self.interpreter.name

    def __str__(self) -> str:
        """As the progress display names it."""
        where = f" on {self.python}" if self.python else ""
        return f"{self.experiment}{where}: {self.variant}"


@dataclass(frozen=True)
class Plan:
    """What an experiment is to be planned for."""

    interpreters: Sequence[Interpreter]
    quick: bool
    """Small sizes: about 6 seconds for each interpreter at most."""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    cells: tuple[str, ...]
    kind: Kind = "stock"
    """Whose figures these are: the text's, this machine's, this machine's with ungil."""


@dataclass(frozen=True)
class Table:
    """Figures side by side, the first column of which is words."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    title: str = ""
    is_picture: bool = False
    """Drawn with characters, for a terminal; a page has a chart instead."""


@dataclass(frozen=True)
class Experiment:
    """One experiment of the texts."""

    name: str
    title: str
    question: str
    """Two sentences: what is asked, and how it is measured."""
    source: Source
    published: Sequence[Figure]
    reading: str
    """One line on how to read the tables."""
    plan: Callable[[Plan], Sequence[Cell]]
    """In the order in which the cells are to be run."""
    tables: Callable[[Results], Sequence[Table]]
    """Of the results of this experiment; where one is missing there is a dash."""
    remarks: Mapping[str, str] = field(default_factory=dict[str, str])
    """A sentence more on how to read them for each variant that is there."""

    def explained(self, results: Results) -> str:
        """How to read the tables of these results."""
        there = {result.variant for result in results}
        remarks = (remark for variant, remark in self.remarks.items() if variant in there)
        return " ".join([self.reading, *remarks])

    @property
    def reproduce(self) -> str:
        """The command line that runs it alone."""
        return f"ungil lab {self.name}"
