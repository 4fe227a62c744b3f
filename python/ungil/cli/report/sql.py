"""`ungil report --sql`: a question to a trace as a database."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any, TextIO

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ungil.cli.database import TABLES, VIEWS, ddl, fill
from ungil.cli.progress import working
from ungil.cli.report.unfinished import blamed, say_cut
from ungil.console import print_lines
from ungil.errors import Error, UsageError
from ungil.formatting import printable

SCHEMA_WORD = ".schema"
MOST_DRAWN = 1_000
"""More rows are printed as they come, not laid out for the width of the terminal."""


def answer(
    trace: str, query: str, part: tuple[int, int] | None, as_json: bool, file: TextIO
) -> None:
    """Print what `query` selects, as a table, or as a JSON array of objects.

    Raises UsageError where the query is wrong or the trace cannot be read, and Error without room
    for its tables. On stderr, a sentence says where a trace ends that was cut off.
    """
    if query.strip() == SCHEMA_WORD:
        file.write(ddl())
        return
    try:
        connection = _nameless()
        with blamed(trace), working("reading the trace"):
            say_cut(fill(connection, trace, part))
    except sqlite3.Error as error:
        place = tempfile.gettempdir()
        raise Error(f"the tables cannot be written to {place!r}: {error}") from error
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_may)
        found = connection.execute(query)
        if found.description is None:
            raise UsageError("--sql selects nothing: give a SELECT")
        heads = [column[0] for column in found.description]
        if as_json:
            _check_distinct(heads)
            _print_json(heads, found, file)
        else:
            _print_table(heads, found, file)
    except (sqlite3.Error, sqlite3.Warning) as error:
        tables = ", ".join([*TABLES, *VIEWS])
        # What SQLite's module says of several statements differs between Pythons.
        wrong = "give one statement" if "one statement" in str(error) else error
        # "not authorized", or "authorization denied" from what a statement does inside.
        if "authoriz" in str(error):
            wrong = "only the trace can be read, so no other database can be attached or written"
        raise UsageError(
            f"--sql: {wrong}; the tables are {tables}; --sql {SCHEMA_WORD} prints their columns"
        ) from error
    finally:
        connection.close()


def _nameless() -> sqlite3.Connection:
    """An empty database in a file that has no name any more, so that nothing can leave it behind.

    Who reads the answer may end this process at any time, as `head` does.
    """
    with tempfile.TemporaryDirectory(prefix="ungil-") as folder:
        return sqlite3.connect(Path(folder) / "trace.sqlite", isolation_level=None)


def _may(action: int, *_of_what: str | None) -> int:
    """Whether SQLite may do this for a query; what only reads can still make another file.

    `VACUUM INTO` attaches it.
    """
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _check_distinct(heads: Sequence[str]) -> None:
    """UsageError if an object could not have all columns."""
    twice = next((head for head in heads if heads.count(head) > 1), None)
    if twice is not None:
        raise UsageError(
            f"--sql: two columns are called {twice!r}, of which a JSON object has one; "
            "name them with AS"
        )


def _print_json(heads: Sequence[str], rows: sqlite3.Cursor, file: TextIO) -> None:
    """One object a line, so that much is printed in little memory."""

    def plain(value: Any) -> Any:
        # JSON has no infinity.
        return None if value in (inf, -inf) else _plain(value)

    between = "["
    for row in rows:
        file.write(between + json.dumps(dict(zip(heads, map(plain, row), strict=True))))
        between = ",\n"
    file.write("[]\n" if between == "[" else "]\n")


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _print_table(heads: Sequence[str], rows: sqlite3.Cursor, file: TextIO) -> None:
    first = rows.fetchmany(MOST_DRAWN + 1)
    are_numbers = [
        all(isinstance(row[index], int | float | None) for row in first)
        for index in range(len(heads))
    ]
    if len(first) > MOST_DRAWN:
        _print_lines(heads, are_numbers, first, rows, file)
        return
    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for head, is_number in zip(heads, are_numbers, strict=True):
        drawn.add_column(Text(printable(head)), justify="right" if is_number else "left")
    for row in first:
        drawn.add_row(*(Text(_cell(value)) for value in row))
    print_lines(file, lambda console: console.print(drawn))


def _print_lines(
    heads: Sequence[str],
    are_numbers: Sequence[bool],
    first: Sequence[Sequence[Any]],
    rows: Iterable[Sequence[Any]],
    file: TextIO,
) -> None:
    """A line for each of many rows, as they come, in columns as wide as the `first` ones need."""
    names = [printable(head) for head in heads]
    lines = [[_cell(value) for value in row] for row in first]
    widths = [max(map(cell_len, column)) for column in zip(names, *lines, strict=True)]

    def write(cells: Sequence[str]) -> None:
        padded = (
            " " * (width - cell_len(cell)) + cell
            if is_number
            else cell + " " * (width - cell_len(cell))
            for cell, width, is_number in zip(cells, widths, are_numbers, strict=True)
        )
        file.write("  ".join(padded).rstrip() + "\n")

    write(names)
    for line in lines:
        write(line)
    for row in rows:
        write([_cell(value) for value in row])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(_plain(value)))
