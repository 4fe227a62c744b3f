"""fairness: how long a thread waited for its turn."""

from __future__ import annotations

from ungil.lab.chart import Curves, Line, Lines
from ungil.lab.experiments.fairness import MOST, digest, of_peters
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, newest, number, row, times_as
from ungil.lab.results import Results
from ungil.lab.units import SECONDS

POLICY = "fair"


def _longest_s(results: Results, python: str, variant: str, threads: int) -> float | None:
    it = digest(results, python, variant, threads)
    return None if it is None else it.longest_ms / 1e3


def _then_s(threads: int) -> float:
    return max(it.longest_ms for it in of_peters(threads)) / 1e3


def found(results: Results) -> Found:
    """The longest gap of any of the most threads."""
    pythons = results.pythons()
    python = newest(
        pythons,
        lambda it: _longest_s(results, it, "stock", MOST),
        lambda it: _longest_s(results, it, POLICY, MOST),
    )
    now = _longest_s(results, python, "stock", MOST)
    ungil = _longest_s(results, python, POLICY, MOST)
    then = _then_s(MOST)
    told = [f"{SECONDS(then)} in 2002"]
    told += [f"{SECONDS(now)} on {python}"] if now is not None else []
    told += [f"{SECONDS(ungil)} under ungil"] if ungil is not None else []
    return Found(
        f"Of {number(MOST)} threads one waited {joined(told)}",
        f"longest wait of {number(MOST)} computing threads for their turn",
        SECONDS,
        "log",
        [
            *row("then: 2002", then, "published"),
            *row(f"now: {python}", now, "stock"),
            *row(f"ungil {POLICY}", ungil, "ungil"),
        ],
        [_chart(results, python, now, ungil)],
    )


def _chart(results: Results, shown: str, now: float | None, ungil: float | None) -> Curves:
    counts = range(1, MOST + 1)
    then = Line("Peters 2002", "published", [_then_s(n) for n in counts])
    panels = [
        Lines(
            f"Python {python}",
            [
                then,
                Line(
                    "today, without ungil",
                    "stock",
                    [_longest_s(results, python, "stock", n) for n in counts],
                ),
                Line(
                    f"ungil {POLICY}",
                    "ungil",
                    [_longest_s(results, python, POLICY, n) for n in counts],
                ),
            ],
        )
        for python in results.pythons()
    ]
    said = "A process that stands still as a whole counts as a wait, too."
    if now is not None and ungil is not None:
        said = f"With {MOST} threads on {shown} it is {times_as(now, ungil)} under ungil. {said}"
    return Curves(
        "Longest wait of any thread",
        said,
        panels,
        counts,
        "threads",
        SECONDS,
        "log",
    )
