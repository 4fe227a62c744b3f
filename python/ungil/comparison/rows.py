"""Rows of threads on a screen: a table, or what is left of it where that is too wide.

A name may be shortened there, and a word may be broken. A number is never cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.noise import Judged, Verdict
from ungil.comparison.words import VERDICTS, amount, at_its_end, changed_by, told_status
from ungil.formatting import printable
from ungil.report.names import shortened

STYLES: dict[Verdict, str] = {
    "better": "bold green",
    "worse": "bold red",
    "more": "cyan",
    "less": "cyan",
    "within noise": "dim",
    "unknown": "dim yellow",
}
ROWS = 20
NARROW, WIDE = 20, 40
LEAST = 8
"""How much of a long name stays beside what follows it."""
ROOM = 30
"""What else changed has a column of its own if it is so wide, at least."""
UNLIMITED = 10_000


@dataclass(frozen=True)
class Drawn:
    """A row of the table."""

    name: Text
    before: Text
    after: Text
    change: Text
    verdict: Text
    also: Text
    """What else changed by more than the noise."""


def draw_rows(comparison: Comparison, console: Console) -> list[RenderableType]:
    """All rows, as wide as `console`."""
    rows, more = _rows(comparison, WIDE if console.width >= 120 else NARROW)
    table = _table(rows)
    room = console.width - _width(table, console)
    if room >= ROOM:
        return [_table(rows, with_also=True), *more]
    if room >= 0:
        also = [it for it in rows if it.also]
        lines = [Text("\nWhat else changed", "bold")] if also else []
        return [table, *more, *lines, *(_beside(it.name, it.also) for it in also)]
    rows, more = _rows(comparison, console.width)
    return [*_stacked(rows), *more]


def _width(table: Table, console: Console) -> int:
    """How wide it is if nothing is cut."""
    return Measurement.get(console, console.options.update(max_width=UNLIMITED), table).maximum


def _table(rows: list[Drawn], *, with_also: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("\nthreads", no_wrap=True)
    for head in ("waited in 10 s\nbefore", "\nafter", "\nchange"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("\nverdict", no_wrap=True)
    if with_also:
        table.add_column("\nand", overflow="fold")
    for row in rows:
        cells = [row.name, row.before, row.after, row.change, row.verdict]
        table.add_row(*cells, *([row.also] if with_also else []))
    return table


def _stacked(rows: list[Drawn]) -> Iterator[RenderableType]:
    """Below each name what a table has in columns."""
    for row in rows:
        yield row.name
        waited = Text("waited ").append(row.before).append(" → ").append(row.after)
        waited.append(" in 10 s")
        for cell in (row.change, row.verdict):
            waited.append("; " if cell else "").append(cell)
        yield _below(waited)
        if row.also:
            yield _below(row.also)


def _beside(name: Text, what: Text) -> Text:
    return name.copy().append(": ").append(what)


def _below(what: Text) -> RenderableType:
    return Padding(what, (0, 0, 0, 2))


def _rows(comparison: Comparison, cells: int) -> tuple[list[Drawn], list[Text]]:
    """The first rows, and a line about the others if there are any."""
    rows = [_drawn(comparison.total, ("all threads", ""), cells)]
    gils = {gil.which.command for gil in comparison.gils}
    shown = 0
    for command in comparison.commands or [None]:
        if command is not None:
            rows.append(_drawn(command, (command.name, ""), cells, "bold"))
        for row in comparison.groups:
            if command is not None and row.which.command != command.which.command:
                continue
            shown += 1
            if shown > ROWS:
                continue
            of_gil = f" at GIL {row.which.gil}" if row.which.command in gils else ""
            rows.append(_drawn(row, (row.name, at_its_end(row) + of_gil), cells))
    if shown <= ROWS:
        return rows, []
    more = f"and {shown - ROWS:,} more groups of threads, in the JSON and on the page"
    return rows, [Text(more, "dim")]


def _drawn(row: Row, named: tuple[str, str], cells: int, style: str = "") -> Drawn:
    """A row with a name that may be shortened, and what follows it, which may not."""
    name, end = named
    waited = row.waited
    status = told_status(row.status)
    return Drawn(
        Text(shortened(printable(name) or "(no name)", max(cells - len(end), LEAST)) + end, style),
        Text(amount(waited.metric, waited.before_median) if row.status != "new" else "-"),
        Text(amount(waited.metric, waited.after_median) if row.status != "gone" else "-"),
        Text(changed_by(waited) if not status else ""),
        Text(status or VERDICTS[waited.verdict], "cyan" if status else STYLES[waited.verdict]),
        _also(row) if not status else Text(),
    )


def _also(row: Row) -> Text:
    text = Text()
    for judged in row.metrics.values():
        if judged is row.waited or not judged.changed:
            continue
        if text:
            text.append(", ")
        text.append(_change(judged), STYLES[judged.verdict].removeprefix("bold "))
    return text


def _change(judged: Judged) -> str:
    metric = judged.metric
    return (
        f"{metric.title} {amount(metric, judged.before_median)} →"
        f" {amount(metric, judged.after_median)}"
    )
