"""What came out of each experiment: a sentence, three figures, and charts.

One module for each experiment, with a function `found`. All of it is made of results: a result that
says otherwise makes another sentence. Nothing here draws, and no experiment knows of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from ungil.lab.chart import Chart, Row, Scale
from ungil.lab.results import Results
from ungil.lab.units import Unit


@dataclass(frozen=True)
class Found:
    """What came out of an experiment."""

    title: str
    """In a sentence with figures, without its dot."""
    measure: str
    """What the figures of the summary are."""
    unit: Unit
    scale: Scale
    summary: Sequence[Row]
    """Then, now, with ungil; those that there are."""
    charts: Sequence[Chart]


def found(experiment: str, results: Results) -> Found:
    """What came out of an experiment by these results, which are its own."""
    return importlib.import_module(f"{__name__}.{experiment}").found(results)
