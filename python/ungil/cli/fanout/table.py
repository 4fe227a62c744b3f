"""The table of `ungil fanout`, and the failures that stand below gathered outputs.

A table of thousands of hosts helps nobody: of many, only failures are shown, and of many of these
only how many failed in which way, with an example each. `--all` shows every host. What commands
have printed is shown all the same, equal outputs once (`gathered.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from rich.table import Table as Grid
from rich.text import Text

from ungil.cli.fanout.gathered import Outputs
from ungil.cli.fanout.outcomes import details, is_of_command, text_of
from ungil.console import line_console
from ungil.fanout import CutOff, Stopped
from ungil.fanout.frontend import failure
from ungil.formatting import clock_duration, plural, printable

if TYPE_CHECKING:
    from ungil.fanout import Outcome

# So many rows fit on a screen.
_ROWS = 20
_LONGEST_TEXT = 500


class Failures:
    """Which hosts have failed and why; of many only how many in which way."""

    def __init__(self, *, everything: bool = False) -> None:
        self._everything = everything
        self._kinds: dict[str, _Kind] = {}
        self.rows: list[Row] = []
        """Of all, or of the first."""

    @property
    def are_many(self) -> bool:
        """Whether they are counted, and not shown one by one."""
        return not self._everything and sum(kind.count for kind in self._kinds.values()) > _ROWS

    def add(self, outcome: Outcome, error: BaseException) -> None:
        """One more has failed."""
        if self._everything or len(self.rows) < _ROWS:
            self.rows.append(Row(outcome))
        self._kinds.setdefault(failure(error), _Kind()).add(outcome, error)

    def print(self, file: TextIO) -> None:
        """Print them."""
        if self.are_many:
            self.print_kinds(file)
        else:
            print_rows(sorted(self.rows, key=Row.place), file)

    def print_kinds(self, file: TextIO) -> None:
        """Print how many failed in which way."""
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        grid.add_column("HOSTS", justify="right", no_wrap=True)
        grid.add_column("FAILED BY", style="red", no_wrap=True)
        grid.add_column("FOR EXAMPLE")
        for name, kind in sorted(self._kinds.items(), key=lambda entry: -entry[1].count):
            grid.add_row(f"{kind.count:,}", Text(name), _cut(kind.example))
        line_console(file).print(grid)


class Table:
    """A table on stdout, when all have come."""

    def __init__(self, *, everything: bool) -> None:
        self._everything = everything
        self._ok: list[Row] = []
        self._failures = Failures(everything=everything)
        self._came = 0
        self._outputs = Outputs()

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        self._came += 1
        error = outcome.exception
        if error is not None:
            self._failures.add(outcome, error)
            return
        if self._everything or len(self._ok) < _ROWS:
            self._ok.append(Row(outcome))
        if is_of_command(outcome.value):
            self._outputs.add(outcome.index, outcome.item.name, outcome.value["stdout"])

    def end(self, summary: str) -> None:
        """Print the table."""
        rows = sorted(self._failures.rows, key=Row.place)
        is_few = self._came <= _ROWS
        outputs = self._outputs
        if not self._everything and outputs.count and (outputs.has_lines or not is_few):
            outputs.print(sys.stdout)
        elif self._everything or is_few:
            rows += sorted(self._ok, key=Row.place)
        if self._failures.are_many:
            self._failures.print_kinds(sys.stdout)
        else:
            print_rows(rows, sys.stdout)
        print(summary)
        if self._failures.are_many:
            print("--all shows every host, --json prints them as JSON")


class Row:
    """What the table says of one host."""

    def __init__(self, outcome: Outcome) -> None:
        error = outcome.exception
        self.index = outcome.index
        self.host = _shortened(outcome.item.name)
        self.attempts = outcome.attempts
        self.time = "" if outcome.resumed else clock_duration(outcome.seconds)
        if error is None:
            self.status, self.style = ("done before" if outcome.resumed else "ok"), "green"
            self.text = _shortened(_of_success(outcome.value))
        else:
            self.status = failure(error)
            is_open = isinstance(error, Stopped | CutOff)
            self.style = "yellow" if is_open else "red"
            self.text = _shortened(details(outcome, error))

    def place(self) -> int:
        """Where it was in the input."""
        return self.index


class _Kind:
    """A way to fail, with an example."""

    def __init__(self) -> None:
        self.count = 0
        self.example = ""

    def add(self, outcome: Outcome, error: BaseException) -> None:
        """One more has failed in this way."""
        self.count += 1
        if self.count == 1:
            text = details(outcome, error)
            self.example = _shortened(f"{outcome.item.name}: {text}" if text else outcome.item.name)


def print_rows(rows: Iterable[Row], file: TextIO) -> None:
    """Print a line for each host; nothing for none."""
    rows = list(rows)
    if not rows:
        return
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    tried = any(row.attempts > 1 for row in rows)
    grid.add_column("HOST", overflow="fold")
    grid.add_column("STATUS", no_wrap=True)
    grid.add_column("TIME", justify="right", no_wrap=True)
    if tried:
        grid.add_column("TRIES", justify="right", no_wrap=True)
    grid.add_column("RESULT")
    for row in rows:
        tries = [str(row.attempts or "")] if tried else []
        cells = [Text(row.status, style=row.style), row.time, *tries, _cut(row.text)]
        grid.add_row(Text(row.host), *cells)
    line_console(file).print(grid)


def _of_success(value: Any) -> str:
    """The first line that a command printed, and how many there are; or what was returned."""
    if not is_of_command(value):
        return "" if value is None else text_of(value)
    lines = [line for line in value["stdout"].splitlines() if line.strip()]
    if len(lines) < 2:
        return lines[0].strip() if lines else ""
    return f"{lines[0].strip()} (+{plural(len(lines) - 1, 'line')})"


def _shortened(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}…"
    return printable(" ".join(text.split()))


def _cut(text: str) -> Any:
    """A cell that gives way to all others: it ends where the terminal does."""
    return Text(text, no_wrap=True, overflow="ellipsis")
