"""futex: how many system calls locks cost."""

from __future__ import annotations

from ungil.lab.chart import Ranked, Row, Rows
from ungil.lab.experiments.futex import (
    ALONE,
    CALLS,
    GREEN,
    PTHREAD,
    TURNS,
    futex_calls,
)
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, newest, pair, row
from ungil.lab.results import Results
from ungil.lab.units import COUNT

# So many imports were timed in 2007; what was run today is counted as if it were as many.
MILLION = 1_000_000


def _of_a_million(results: Results, python: str, variant: str) -> float | None:
    """Calls for a million imports, or for a million turns of both threads."""
    calls = futex_calls(results, python, variant)
    numbers = [it.settings["n"] for it in results if it.variant == CALLS + variant]
    if calls is None or not numbers:
        return None
    threads = 2 if variant.startswith(TURNS) else 1
    return MILLION * calls / (threads * max(numbers))


def found(results: Results) -> Found:
    """Calls of imports then, and of threads that take turns now."""
    pythons = results.pythons()
    python = newest(
        pythons,
        lambda it: _of_a_million(results, it, ALONE),
        lambda it: _of_a_million(results, it, TURNS + GREEN),
    )
    imports = _of_a_million(results, python, ALONE)
    turns = _of_a_million(results, python, TURNS)
    green = _of_a_million(results, python, TURNS + GREEN)
    then = float(PTHREAD.futex)
    told = [f"{COUNT(then)} futex calls in 2007"]
    told += [f"{COUNT(imports)} on {python}"] if imports is not None else []
    title = f"A million imports made {joined(told)}"
    if turns is not None:
        title += f"; a million turns of two threads make {COUNT(turns)}"
        title += f", and {COUNT(green)} on green ones" if green is not None else ""
    return Found(
        title,
        "futex calls of a million imports, or of a million turns of two threads",
        COUNT,
        "log",
        [
            *row("then: imports", then, "published"),
            *row("now: imports", imports, "stock"),
            *row("now: turns", turns, "stock"),
            *row("ungil, green", green, "ungil"),
        ],
        [
            Ranked(
                "futex calls of a million",
                "Imports by a program without threads, and turns of two threads that need each"
                " other. A handful of calls is what starting and ending take.",
                [
                    Rows("imports", _rows(results, ALONE, then)),
                    Rows("turns of two threads", _rows(results, TURNS, None)),
                ],
                COUNT,
                "log",
            )
        ],
    )


def _rows(results: Results, variant: str, then: float | None) -> list[Row]:
    rows = row("2007: Python 2.5.1", then, "published")
    for python in results.pythons():
        stock, green = (_of_a_million(results, python, it) for it in (variant, variant + GREEN))
        rows += pair(python, stock, green)
    return rows
