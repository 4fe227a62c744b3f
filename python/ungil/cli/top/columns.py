"""The columns of the table of threads: what they show, and in which order they sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from ungil.cli.top.figures import Row
from ungil.formatting import duration, printable, share, tally
from ungil.report.names import told_apart

STYLES = {"holds": "bold red", "waits": "yellow", "off": ""}
MARKS = {"holds": "●", "waits": "◌", "off": " "}
MARK_WIDTH = 2
"""Of a mark, and of the space between it and the name."""
NARROWEST_NAME, WIDEST_NAME = 15, 32
"""Cells of the column of names."""


@dataclass(frozen=True)
class Column:
    """One column."""

    title: str
    width: int | None
    """`None`: what is left."""
    cell: Callable[[Row], Text]
    key: Callable[[Row], Any] | None
    """What rows are sorted by, the smallest first; `None` if that makes no sense."""
    name: str = ""
    """What it is called where there is room."""


def _right(text: str, width: int, style: str = "") -> Text:
    return Text(text.rjust(width), style=style)


def _name(row: Row) -> Text:
    return Text(f"{MARKS[row.state]} {printable(row.name)}", style=STYLES[row.state])


def _part(part: float, width: int) -> Text:
    style = "dim" if part <= 0 else "bold" if part >= 0.5 else ""
    return _right(share(part, 1.0), width, style)


def _rate(number: float, width: int) -> Text:
    return _right(tally(round(number)) if number >= 0.5 else "0", width, "" if number else "dim")


def _worst(row: Row) -> Text:
    style = "dim" if row.worst_wait_s <= 0 else "red" if row.worst_wait_s >= 0.1 else ""
    return _right(duration(row.worst_wait_s), 6, style)


def _line(row: Row) -> Text:
    if row.line is None:
        return Text("")
    place = row.line.file.rsplit("/", 1)[-1]
    return Text(printable(f"{place}:{row.line.line} {row.line.function}"), style="dim")


COLUMNS = (
    Column("thread", NARROWEST_NAME, _name, lambda it: it.name, "name"),
    Column("hold", 4, lambda it: _part(it.held, 4), lambda it: -it.held, "time held"),
    Column("wait", 4, lambda it: _part(it.waited, 4), lambda it: -it.waited, "time waited"),
    Column("free/s", 6, lambda it: _rate(it.freely, 6), lambda it: -it.freely, "free releases"),
    Column("forced", 6, lambda it: _rate(it.forced, 6), lambda it: -it.forced, "forced releases"),
    Column("worst", 6, _worst, lambda it: -it.worst_wait_s, "worst wait"),
    Column(
        "cpu",
        4,
        lambda it: Text("   ?", style="dim") if it.cpu is None else _part(it.cpu, 4),
        lambda it: -(it.cpu or 0),
        "CPU",
    ),
    Column("where", None, _line, None),
)


def name_width(width: int) -> int:
    """Of the names, with their marks, where the screen has so many cells."""
    return min(WIDEST_NAME, max(NARROWEST_NAME, width // 6))


def told_apart_in(rows: Iterable[Row], width: int) -> list[Row]:
    """The rows with names that fit into that screen, so that they can be told apart."""
    rows = list(rows)
    cut = told_apart({printable(it.name) for it in rows}, name_width(width) - MARK_WIDTH)
    return [replace(it, name=cut[printable(it.name)]) for it in rows]


SORTABLE = [it for it in COLUMNS if it.key is not None]
# By what it held and waited together, as the report has it, until another order is asked for.
BY_DEFAULT = COLUMNS[1]


def ordered(rows: tuple[Row, ...], by: Column) -> list[Row]:
    """`rows` in that order; where they are alike, those first that waited or held most."""

    def place(row: Row) -> tuple[Any, ...]:
        first = by.key(row) if by.key is not None else 0
        return first, -row.waited, -row.held, not row.main, row.name

    return sorted(rows, key=place)
