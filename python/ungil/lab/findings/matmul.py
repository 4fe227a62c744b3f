"""matmul: whether more workers are quicker."""

from __future__ import annotations

from collections.abc import Sequence

from ungil.lab.chart import Chart, Curves, Kind, Line, Lines, Ranked, Rows
from ungil.lab.experiments.matmul import (
    APART,
    HOW,
    INTERPRETERS,
    SHARE,
    THREADS,
    published,
    weighted,
    workers_of,
)
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, newest, number, row
from ungil.lab.results import Results
from ungil.lab.units import PERCENT

KINDS: dict[str, Kind] = {THREADS: "stock", SHARE: "ungil", INTERPRETERS: "stock", APART: "stock"}


def found(results: Results) -> Found:
    """The time of as many workers as there are cores, of one thread's."""
    pythons, counts = results.pythons(), workers_of(results)
    cores = results.header.machine["cores"]
    many = max((it for it in counts if it <= cores), default=1)
    python = newest(
        pythons,
        lambda it: weighted(results, it, THREADS, many),
        lambda it: weighted(results, it, SHARE, many),
    )
    now = weighted(results, python, THREADS, many)
    ungil = weighted(results, python, SHARE, many)
    then = published(SHARE, many)
    told = [f"{PERCENT(now)} as threads on {python}"] if now is not None else []
    told += [f"{PERCENT(ungil)} as processes that share through ungil"] if ungil is not None else []
    title = f"Of one thread's time {number(many)} workers take {joined(told)}"
    return Found(
        f"{title}; POSH took {PERCENT(then)} in 2003",
        f"time of {number(many)} workers, of one thread's",
        PERCENT,
        "linear",
        [
            *row("then: POSH, 2003", then, "published"),
            *row(f"now: {python} threads", now, "stock"),
            *row("ungil.share", ungil, "ungil"),
        ],
        _charts(results, pythons, counts, many) if counts else [],
    )


def _charts(
    results: Results, pythons: Sequence[str], counts: list[int], many: int
) -> Sequence[Chart]:
    cores = results.header.machine["cores"]
    return [
        Curves(
            "Time by number of workers, of one thread's",
            f"100 % is one thread. This machine has {cores} cores, and the one of 2003 had eight:"
            f" more than {cores} workers cannot be quicker here.",
            [_panel(results, it, counts) for it in pythons],
            counts,
            "workers",
            PERCENT,
            "linear",
        ),
        Ranked(
            f"Every way to have {number(many)} workers",
            f"Apart is processes that share nothing: what {cores} cores give.",
            [_every_way(results, it, many) for it in pythons],
            PERCENT,
            "linear",
            100.0,
            "one thread",
        ),
    ]


def _every_way(results: Results, python: str, many: int) -> Rows:
    rows = [
        *row("threads, 2003", published(THREADS, many), "published"),
        *row("POSH, 2003", published(SHARE, many), "published"),
    ]
    for how, name in HOW.items():
        rows += row(name, weighted(results, python, how, many), KINDS[how])
    return Rows(f"Python {python}", rows)


def _panel(results: Results, python: str, counts: list[int]) -> Lines:
    then = [
        Line("threads, 2003", "published", [published(THREADS, it) for it in counts], True),
        Line("POSH, 2003", "published", [published(SHARE, it) for it in counts]),
    ]
    today = [
        Line(name, KINDS[how], [weighted(results, python, how, it) for it in counts], how == APART)
        for how, name in ((THREADS, "threads, today"), (SHARE, HOW[SHARE]), (APART, HOW[APART]))
    ]
    return Lines(f"Python {python}", [*then, *today])
