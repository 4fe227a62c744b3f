"""battle: how often two computing threads took the GIL from each other."""

from __future__ import annotations

from ungil.lab.chart import Hold, Row, Strip, Strips, Timeline
from ungil.lab.experiments.battle import SLOT_NS, SLOTS, each, is_stock
from ungil.lab.findings import Found
from ungil.lab.findings.words import joined, newest, row
from ungil.lab.results import Results
from ungil.lab.units import COUNT

STOCK, POLICY = "a core each", "batch"


def found(results: Results) -> Found:
    """Handoffs a second, where each of the two threads has a core."""
    rates = {(python, variant): it["handoffs_per_s"] for python, variant, it in each(results)}
    pythons = results.pythons()
    python = newest(pythons, lambda it: rates.get((it, STOCK)), lambda it: rates.get((it, POLICY)))
    # The text has the picture alone; so the oldest interpreter that is here stands for its own.
    oldest = next((it for it in pythons if (it, STOCK) in rates and it != python), "")
    labels = (("old", oldest, STOCK), ("now", python, STOCK), ("ungil", python, POLICY))
    told: list[str] = []
    summary: list[Row] = []
    for who, name, variant in labels:
        rate = rates.get((name, variant))
        if rate is not None:
            told.append(f"{COUNT(rate)} {'under ungil' if who == 'ungil' else f'on {name}'}")
            label = f"ungil {variant}" if who == "ungil" else f"{who}: {name}"
            summary += row(label, rate, "ungil" if who == "ungil" else "stock")
    return Found(
        f"Handoffs a second between two computing threads: {joined(told)}",
        "how often a second two threads took the GIL from each other",
        COUNT,
        "log",
        summary,
        [
            Timeline(
                "Who held the GIL",
                "A block is a thread that holds it: thread 1 above, thread 2 below. The text has"
                " such a picture, and no figures.",
                [_panel(results, it) for it in pythons],
                SLOTS * SLOT_NS / 1e6,
            )
        ],
    )


def _panel(results: Results, python: str) -> Strips:
    return Strips(
        f"Python {python}",
        [
            Strip(
                variant if is_stock(variant) else f"ungil {variant}",
                "stock" if is_stock(variant) else "ungil",
                [Hold(who, begin_ms, end_ms) for who, begin_ms, end_ms in it["spans"]],
            )
            for name, variant, it in each(results)
            if name == python
        ],
    )
