"""countdown: what two threads cost beside none."""

from __future__ import annotations

from collections.abc import Iterator

from ungil.lab.chart import Mark, Ranked, Row, Rows
from ungil.lab.experiments.countdown import ONE_CORE, POLICIES, SEQUENCE, THREADS, slowdown
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, longer, newest, row
from ungil.lab.published import COUNTDOWN
from ungil.lab.results import Results
from ungil.lab.units import TIMES

POLICY = "batch"


def found(results: Results) -> Found:
    """The time of two threads, of that without threads."""
    python = newest(
        results.pythons(),
        lambda it: slowdown(results, it, THREADS),
        lambda it: slowdown(results, it, POLICY),
    )
    now = slowdown(results, python, THREADS)
    ungil = slowdown(results, python, POLICY)
    then = COUNTDOWN[THREADS] / COUNTDOWN[SEQUENCE]
    told = [f"{longer(then)} than none in 2009"]
    told += [f"{longer(now)} on {python}"] if now is not None else []
    told += [f"{longer(ungil)} under ungil"] if ungil is not None else []
    return Found(
        f"Two threads that count took {joined(told)}",
        "time of two threads, of the same work without threads",
        TIMES,
        "linear",
        [
            *row("then: 2009", then, "published"),
            *row(f"now: {python}", now, "stock"),
            *row(f"ungil {POLICY}", ungil, "ungil"),
        ],
        [
            Ranked(
                "Time of two threads, as a multiple of the same work without threads",
                "Two threads on two cores, and on one. A bar that ends at the line costs nothing.",
                [Rows("Beazley 2009", list(_published())), *_today(results)],
                TIMES,
                "linear",
                1.0,
                "as long as without threads",
            )
        ],
    )


def _published() -> Iterator[Row]:
    for label, how in (("two cores", THREADS), ("one core", ONE_CORE)):
        weight = COUNTDOWN[how] / COUNTDOWN[SEQUENCE]
        yield Row(label, [Mark(weight, "published", is_variant=how == ONE_CORE)])


def _today(results: Results) -> Iterator[Rows]:
    for python in results.pythons():
        rows: list[Row] = []
        for label, how in (("as it is", THREADS), ("on one core", ONE_CORE)):
            weight = slowdown(results, python, how)
            if weight is not None:
                rows.append(Row(label, [Mark(weight, "stock", is_variant=how == ONE_CORE)]))
        for policy in POLICIES:
            rows += row(f"ungil {policy}", slowdown(results, python, policy), "ungil")
        yield Rows(f"Python {python}", rows)
