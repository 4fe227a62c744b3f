"""tick: how long everything stood still, and whether anybody could say why."""

from __future__ import annotations

from ungil.lab.chart import Ranked, Rows
from ungil.lab.experiments.tick import POLICY, STOCK_NAME, figure, line_of
from ungil.lab.findings import Found
from ungil.lab.findings.words import SAME, joined, newest, row
from ungil.lab.published import TICK_S
from ungil.lab.results import Results
from ungil.lab.units import SECONDS

STILL = "computing_still_s"


def found(results: Results) -> Found:
    """How long a computing thread stood still."""
    pythons = results.pythons()
    python = newest(
        pythons,
        lambda it: figure(results, it, STOCK_NAME, STILL),
        lambda it: figure(results, it, POLICY, STILL),
    )
    now = figure(results, python, STOCK_NAME, STILL)
    ungil = figure(results, python, POLICY, STILL)
    line = line_of(results, python)
    told = [f"{SECONDS(TICK_S)} in 2009"]
    told += [f"{SECONDS(now)} on {python}"] if now is not None else []
    title = f"During one long operation another thread stood still for {joined(told)}"
    if now and ungil:
        # As in any two runs: an operation that nobody shortens takes a little more or less.
        shorter = ungil < now * (1 - 3 * SAME)
        title += f"; under ungil {SECONDS(ungil)}" if shorter else "; ungil cannot shorten it"
    if line:
        title += f"{', but' if ungil else '; ungil'} names the line: {line}"
    return Found(
        title,
        "how long a computing thread stood still",
        SECONDS,
        "linear",
        [
            *row("then: 2009", TICK_S, "published"),
            *row(f"now: {python}", now, "stock"),
            *row(f"ungil {POLICY}", ungil, "ungil"),
        ],
        [
            Ranked(
                "For how long each stood still",
                "The operation itself, a thread that computes beside it, and Ctrl-C, which was sent"
                " 50 ms after the beginning.",
                [
                    Rows("Beazley 2009", row("the operation", TICK_S, "published")),
                    *(_panel(results, it) for it in pythons),
                ],
                SECONDS,
                "linear",
            )
        ],
    )


def _panel(results: Results, python: str) -> Rows:
    def stock(of: str) -> float | None:
        return figure(results, python, STOCK_NAME, of)

    return Rows(
        f"Python {python}",
        [
            *row("the operation", stock("tick_s"), "stock"),
            *row("a thread", stock(STILL), "stock"),
            *row("Ctrl-C took", stock("to_interrupt_s"), "stock"),
            *row("a thread, ungil", figure(results, python, POLICY, STILL), "ungil"),
        ],
    )
