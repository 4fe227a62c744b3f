"""What the tests of the lab share: an interpreter, cells that measure nothing, a header."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from ungil.interpreters import Interpreter, choose
from ungil.lab.experiment import Cell
from ungil.lab.results import Header, Result, Results

HEADER = Header(ungil="1.2.3", machine={"cpu": "slow", "cores": 2}, quick=True)


@cache
def chosen(path: str = sys.executable) -> Interpreter:
    """An interpreter as the command line would choose it."""
    return choose([path])[0]


def cell(
    variant: str = "stock",
    measure: Callable[[], dict[str, Any]] = dict,
    interpreter: Interpreter | None = None,
    **settings: Any,
) -> Cell:
    """A cell of an experiment that does not exist."""
    return Cell("none", interpreter or chosen(), variant, measure, 1.0, settings)


def results(*cells: Result, header: Header = HEADER) -> Results:
    """Results with these cells, on the interpreters that they name."""
    names = dict.fromkeys(cell.python for cell in cells if cell.python)
    return Results(header, [{"name": name} for name in names], cells)


def result(experiment: str, python: str, variant: str, **measured: Any) -> Result:
    """A measured cell."""
    return Result(experiment, python, variant, 1, {}, "measured", measured, None, 1.0, 0.0, "")
