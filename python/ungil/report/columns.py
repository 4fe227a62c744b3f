"""A table whose columns go, the least telling first, until it fits: numbers are never cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of the table."""

    group: str
    head: str
    cell: Callable[[T], str]
    keep: int
    """The column with the lowest number goes first when the terminal is too narrow."""
    begins_group: bool = False


@dataclass(frozen=True)
class Row(Generic[T]):
    """One line: its name, in the first column, and what the others tell of."""

    name: str
    of: T
    style: str = ""


def column_table(
    head: str,
    rows: Sequence[Row[T]],
    columns: Sequence[Column[T]],
    width: int,
    style: Callable[[T], Mapping[str, str]] = lambda _: {},
    widest_name: int | None = None,
) -> Table:
    """The rows with as many of the columns as fit into `width`; `head` is that of their names.

    A name that is wider than `widest_name`, or than the table, goes on in the next line. `style`
    has styles of cells by the heads of their columns.
    """
    cells = {column: [column.cell(row.of) for row in rows] for column in columns}
    widths = {
        column: max(map(cell_len, (column.group, column.head, *texts))) + column.begins_group
        for column, texts in cells.items()
    }
    longest = max(cell_len(head), *(cell_len(row.name) for row in rows))
    name_width = min(longest, width if widest_name is None else widest_name)
    for column in sorted(columns, key=lambda column: column.keep):
        if name_width + sum(widths.values()) + len(widths) <= width:
            break
        del widths[column]
    return _drawn(head, name_width, rows, widths, cells, style)


def _drawn(
    head: str,
    name_width: int,
    rows: Sequence[Row[T]],
    widths: Mapping[Column[T], int],
    cells: Mapping[Column[T], Sequence[str]],
    style: Callable[[T], Mapping[str, str]],
) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(f"\n{head}", width=name_width, overflow="fold")
    group = ""
    for column, column_width in widths.items():
        # A group whose first column was dropped keeps its title over the next one.
        title = column.group if column.group != group else ""
        group = column.group
        table.add_column(
            f"{title}\n{column.head}", width=column_width, justify="right", no_wrap=True
        )
    for index, row in enumerate(rows):
        styles = style(row.of)
        texts = [Text(cells[column][index], style=styles.get(column.head, "")) for column in widths]
        table.add_row(Text(row.name), *texts, style=row.style)
    return table
