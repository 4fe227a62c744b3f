"""response: how long an answer takes beside computing threads, and what that costs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ungil.lab.chart import Chart, Curves, Line, Lines, Ranked, Rows
from ungil.lab.experiments.response import VARIANTS, figure, kind_of, then_s, thread_counts
from ungil.lab.figures import ratio
from ungil.lab.findings import Found
from ungil.lab.findings.words import newest, row
from ungil.lab.results import Results
from ungil.lab.units import SECONDS, TIMES

POLICY, PEER = "interactive", "interval 50 us"
# Whose lines are drawn; all variants are in the charts of the most threads.
DRAWN = ("stock", PEER, POLICY)
# Of an interpreter, a variant and so many threads.
_Value = Callable[[Results, str, str, int], float | None]


def _p50_s(results: Results, python: str, name: str, threads: int) -> float | None:
    median_ms = figure(results, python, name, threads, "p50_ms")
    return None if median_ms is None else median_ms / 1e3


def found(results: Results) -> Found:
    """The median answer beside the most threads."""
    pythons, counts = results.pythons(), thread_counts(results)
    most = counts[-1] if counts else 0
    python = newest(
        pythons,
        lambda it: _p50_s(results, it, "stock", most),
        lambda it: _p50_s(results, it, POLICY, most),
    )
    now = _p50_s(results, python, "stock", most)
    ungil = _p50_s(results, python, POLICY, most)
    oldest = next((it for it in pythons if it != python), "")
    old = _p50_s(results, oldest, "stock", most)
    title = f"Beside {most} computing threads an answer takes"
    title += f" {SECONDS(now)} on {python}" if now is not None else " a time that was not measured"
    title += f" and {SECONDS(ungil)} under ungil" if ungil else ""
    title += f"; on {oldest} it took {SECONDS(old)}" if old else ""
    return Found(
        title,
        f"median time of an answer beside {most} computing threads",
        SECONDS,
        "log",
        [
            *row(f"old: {oldest}", old, "stock"),
            *row(f"now: {python}", now, "stock"),
            *row(f"ungil {POLICY}", ungil, "ungil"),
        ],
        _charts(results, pythons, counts),
    )


def _name(name: str) -> str:
    return f"ungil {name}" if kind_of(name) == "ungil" else name


def _charts(results: Results, pythons: Sequence[str], counts: Sequence[int]) -> list[Chart]:
    if not counts:
        return []
    most = counts[-1]
    return [
        Curves(
            "Median time of an answer",
            "The client sends 100 requests a second. That of Victor Skvortsov's echo server of 2021"
            " asks again at once; shown is what a request took.",
            [
                Lines(
                    f"Python {python}",
                    [
                        Line("echo server, 2021", "published", [then_s(n) for n in counts]),
                        *(
                            Line(
                                "stock, today" if name == "stock" else _name(name),
                                kind_of(name),
                                [_p50_s(results, python, name, n) for n in counts],
                                is_variant=name == PEER,
                            )
                            for name in DRAWN
                        ),
                    ],
                )
                for python in pythons
            ],
            counts,
            "computing threads",
            SECONDS,
            "log",
        ),
        Ranked(
            f"Median answer beside {most} threads, under every policy",
            "Which policy fits depends on what is wanted: under batch a thread keeps the GIL for"
            " long, and fair gives all threads the same.",
            [_variants(results, it, most, _p50_s) for it in pythons],
            SECONDS,
            "log",
        ),
        Ranked(
            "What the computing threads did meanwhile",
            "As a multiple of what they do on the same interpreter as it is; less is what the quick"
            " answers cost.",
            [
                _variants(results, it, most, _work)
                for it in pythons
                if _work(results, it, POLICY, most) is not None
            ],
            TIMES,
            "linear",
            1.0,
            "as much as stock",
        ),
    ]


def _variants(results: Results, python: str, threads: int, value: _Value) -> Rows:
    """A row for each variant of an interpreter."""
    rows = (
        row(_name(name), value(results, python, name, threads), kind_of(name)) for name in VARIANTS
    )
    return Rows(f"Python {python}", [it for each in rows for it in each])


def _work(results: Results, python: str, name: str, threads: int) -> float | None:
    """What the computing threads did, of what they do on stock."""
    rates = (figure(results, python, it, threads, "rounds_per_s") for it in (name, "stock"))
    return ratio(*rates)
