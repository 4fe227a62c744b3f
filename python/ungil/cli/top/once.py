"""What `ungil top --once` prints for people: the screen of threads, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ungil.cli.top import lines
from ungil.cli.top.columns import BY_DEFAULT, COLUMNS, ordered, told_apart_in
from ungil.cli.top.figures import Figures
from ungil.formatting import duration, printable

BLAMED = 4
BETWEEN = 2


def print_once(console: Console, shown: Sequence[Figures]) -> None:
    """Each process: its GIL, who holds it, its threads, and for whom they waited."""
    width = console.width
    for index, process in enumerate(shown):
        if index:
            console.print()
        told = f"process {process.pid}: {printable(lines.command(process.command))}"
        console.print(Text(told, style="bold"), soft_wrap=True)
        console.print(Text(f"watched for {duration(process.interval_s)}", style="dim"))
        console.print(lines.gil(process, width))
        console.print(lines.holder(process), soft_wrap=True)
        console.print()
        console.print(_table(process, width))
        console.print()
        console.print(lines.blame(process.blamed[:BLAMED], width))


def _table(process: Figures, width: int) -> Table:
    table = Table(box=None, padding=(0, BETWEEN, 0, 0), pad_edge=False, header_style="dim")
    for column in COLUMNS:
        is_text = column.width is None or column is COLUMNS[0]
        justify = "left" if is_text else "right"
        table.add_column(
            column.title,
            justify=justify,
            no_wrap=True,
            overflow="ellipsis",
            min_width=column.width,
        )
    for row in told_apart_in(ordered(process.rows, BY_DEFAULT), width):
        table.add_row(*(column.cell(row) for column in COLUMNS))
    return table
