"""How long one start of a program takes, beside the bare start of the same round: as a table."""

import statistics
from collections.abc import Sequence
from typing import Any

from interleaving import Runs, columns
from rich.table import Table


def more(runs: Runs, variant: Any, bare: Any, figure: str) -> list[float]:
    """How much more of a figure than the bare start has, round by round."""
    pairs = zip(
        runs.each(variant, lambda measured: measured[figure]),
        runs.each(bare, lambda measured: measured[figure]),
        strict=True,
    )
    return [one - least for one, least in pairs]


def spread_of_more(values: list[float], digits: int) -> str:
    """Median, and the quarter below and above."""
    if len(values) < 2:
        return f"{values[0]:+.{digits}f}"
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def table_of_starts(
    runs: Runs, variants: Sequence[Any], bare: Any, unit: str, digits: int
) -> Table:
    """Wall and CPU time of one start, which was measured as `wall_UNIT` and `cpu_UNIT`."""
    table = columns(
        f"{runs.setting}: one start, in {unit}",
        *("", "wall", "more than bare", "CPU", "more than bare"),
    )
    for variant in variants:
        cells = [variant.name]
        for figure in (f"wall_{unit}", f"cpu_{unit}"):
            median = runs.median(variant, lambda measured, figure=figure: measured[figure])
            increase = spread_of_more(more(runs, variant, bare, figure), digits)
            cells += [f"{median:.{digits}f}", increase]
        table.add_row(*cells)
    return table
