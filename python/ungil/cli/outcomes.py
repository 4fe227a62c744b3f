"""What `ungil fanout` prints: outcomes as they come, or a table at the end; and how many of which.

A table of thousands of hosts helps nobody: of many, only failures are shown, and of many of these
only how many failed in which way, with an example each. `--all` shows every host. What commands
have printed is shown all the same, equal outputs once (`ungil.cli.gathered`).
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeGuard

from ungil.cli.hosts import BadLine, Host, NoHost
from ungil.fanout import Outcome, Stopped
from ungil.fanout._command import CommandError
from ungil.fanout._progress import duration
from ungil.report.units import plural

if TYPE_CHECKING:
    from ungil.cli.gathered import Outputs

# So many rows fit on a screen.
_ROWS = 20
_KINDS = 3
_LONGEST_TEXT = 500


class Printer(Protocol):
    """Prints outcomes."""

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        ...

    def end(self, summary: str) -> None:
        """That were all."""
        ...


class Tally:
    """How many hosts ended in which way."""

    def __init__(self) -> None:
        self.ok = 0
        self.resumed = 0
        self.retried = 0
        self.not_run = 0
        """Waited to be tried again when everything was stopped."""
        self.cut = 0
        """Were cancelled while they ran."""
        self.abandoned = 0
        self.came = 0
        self.failures: dict[str, int] = {}

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(self.failures.values())

    @property
    def finished(self) -> int:
        """How many ended by themselves."""
        return self.ok + self.failed

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        error = outcome.exception
        self.came += 1
        self.retried += outcome.attempts > 1
        self.abandoned += outcome.abandoned
        if error is None:
            self.ok += 1
            self.resumed += outcome.resumed
        elif isinstance(error, Stopped):
            self.not_run += 1
        elif not isinstance(error, Exception):
            self.cut += 1
        else:
            kind = kind_of(error)
            self.failures[kind] = self.failures.get(kind, 0) + 1

    def __str__(self) -> str:
        parts = [f"{self.ok:,} ok{f' ({self.resumed:,} of them before)' if self.resumed else ''}"]
        if self.failed:
            by_count = sorted(self.failures.items(), key=lambda entry: (-entry[1], entry[0]))
            kinds = [f"{count:,} {kind}" for kind, count in by_count[:_KINDS]]
            if others := sum(count for _, count in by_count[_KINDS:]):
                kinds.append(f"{others:,} in other ways")
            parts.append(f"{self.failed:,} failed ({', '.join(kinds)})")
        if self.retried:
            parts.append(f"{self.retried:,} tried more than once")
        if self.abandoned:
            parts.append(f"{plural(self.abandoned, 'thread')} abandoned")
        return ", ".join(parts)


class Table:
    """A table on stdout, when all have come."""

    def __init__(self, *, everything: bool) -> None:
        self._everything = everything
        self._ok: list[_Row] = []
        self._failed: list[_Row] = []
        self._came = 0
        self._kinds: dict[str, _Kind] = {}
        self._outputs: Outputs | None = None

    def add(self, outcome: Outcome) -> None:
        """One more has come."""
        self._came += 1
        rows = self._ok if outcome.ok else self._failed
        if self._everything or len(rows) <= _ROWS:
            rows.append(_Row(outcome))
        error = outcome.exception
        if error is not None:
            self._kinds.setdefault(kind_of(error), _Kind()).add(outcome)
        elif _is_of_command(outcome.value):
            self._of_commands().add(outcome.item.name, outcome.value["stdout"])

    def end(self, summary: str) -> None:
        """Print the table."""
        failures = sum(kind.count for kind in self._kinds.values())
        rows = sorted(self._failed, key=_Row.place)
        is_few = self._came <= _ROWS
        outputs = None if self._everything else self._outputs
        if outputs is not None and (outputs.has_lines or not is_few):
            outputs.print()
        elif self._everything or is_few:
            rows += sorted(self._ok, key=_Row.place)
        if not self._everything and failures > _ROWS:
            self._print_kinds()
        elif rows:
            self._print_rows(rows)
        print(summary)
        if not self._everything and failures > _ROWS:
            print("every host is shown by --all, or as JSON by --json")

    def _of_commands(self) -> Outputs:
        # With it comes rich, which is slow to import, and only tables need it.
        from ungil.cli.gathered import Outputs

        if self._outputs is None:
            self._outputs = Outputs()
        return self._outputs

    def _print_rows(self, rows: list[_Row]) -> None:
        from rich.table import Table as Grid
        from rich.text import Text

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
        _print(grid)

    def _print_kinds(self) -> None:
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(box=None, pad_edge=False, header_style="bold")
        grid.add_column("HOSTS", justify="right", no_wrap=True)
        grid.add_column("FAILED BY", style="red", no_wrap=True)
        grid.add_column("FOR EXAMPLE")
        for name, kind in sorted(self._kinds.items(), key=lambda entry: -entry[1].count):
            grid.add_row(f"{kind.count:,}", Text(name), _cut(kind.example))
        _print(grid)


class JsonLines:
    """An object in a line on stdout for each, as it comes."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def add(self, outcome: Outcome) -> None:
        """Print one."""
        error = outcome.exception
        told: dict[str, Any] = {"host": outcome.item.name, "ok": outcome.ok}
        if isinstance(error, CommandError):
            told |= {"exit": error.exit, "stdout": error.stdout, "stderr": error.stderr}
        elif error is None:
            told["value"] = outcome.value
        if error is not None:
            told |= {"kind": kind_of(error), "error": _said(error)}
        told["attempts"] = outcome.attempts
        told["started"] = round(outcome.started + self._offset, 3)
        told["seconds"] = round(outcome.finished - outcome.started, 6)
        for flag in ("abandoned", "resumed"):
            if getattr(outcome, flag):
                told[flag] = True
        item: Host | NoHost = outcome.item
        if isinstance(item, Host) and isinstance(item.value, dict):
            told["item"] = item.value
        print(json.dumps(told, default=repr), flush=True)

    def end(self, summary: str) -> None:
        """Say how many on stderr: stdout is for programs."""
        print(summary, file=sys.stderr)


class Tagged:
    """Every line of output with the name of its host before it, as it comes."""

    def add(self, outcome: Outcome) -> None:
        """Print one."""
        name, error = outcome.item.name, outcome.exception
        if isinstance(error, CommandError):
            self._print(name, error.stdout, sys.stdout)
            self._print(name, error.stderr, sys.stderr)
            self._print(name, error.kind, sys.stderr)
        elif error is not None:
            self._print(name, _said(error), sys.stderr)
        elif _is_of_command(outcome.value):
            self._print(name, outcome.value["stdout"], sys.stdout)
            self._print(name, outcome.value["stderr"], sys.stderr)
        else:
            self._print(name, _text(outcome.value), sys.stdout)

    def end(self, summary: str) -> None:
        """Say how many on stderr."""
        print(summary, file=sys.stderr)

    def _print(self, name: str, text: str, file: TextIO) -> None:
        for line in text.splitlines():
            print(f"{name}: {line}", file=file)
        file.flush()


class _Row:
    """What the table says of one host."""

    def __init__(self, outcome: Outcome) -> None:
        error = outcome.exception
        self.index = outcome.index
        self.host = _shortened(outcome.item.name)
        self.attempts = outcome.attempts
        self.time = "" if outcome.resumed else duration(outcome.finished - outcome.started)
        self.text = _shortened(_of_success(outcome.value) if error is None else _said(error))
        if error is None:
            self.status, self.style = ("done before" if outcome.resumed else "ok"), "green"
        elif isinstance(error, Stopped):
            self.status, self.style = "not done", "yellow"
        elif not isinstance(error, Exception):
            self.status, self.style = "cut off", "yellow"
        else:
            self.status, self.style = "failed", "red"
            if isinstance(error, TimeoutError):
                self.status = "abandoned" if outcome.abandoned else "timed out"

    def place(self) -> int:
        """Where it was in the input."""
        return self.index


class _Kind:
    """A way to fail, with an example."""

    def __init__(self) -> None:
        self.count = 0
        self.example = ""

    def add(self, outcome: Outcome) -> None:
        """One more has failed in this way."""
        self.count += 1
        if self.count == 1:
            error = outcome.exception
            said = "" if error is None else _said(error).removeprefix(f"{kind_of(error)}: ")
            self.example = _shortened(f"{outcome.item.name}: {said}")


def kind_of(error: BaseException) -> str:
    """In which way a host failed, in few words."""
    if isinstance(error, CommandError):
        return error.kind
    if isinstance(error, BadLine):
        return "bad line"
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, Stopped):
        return "not done"
    return type(error).__name__ if isinstance(error, Exception) else "cut off"


def _said(error: BaseException | None) -> str:
    """What an exception says, with its name unless the text says it all."""
    if error is None:
        return ""
    if isinstance(error, Stopped):
        return "waited to be tried again"
    if not isinstance(error, Exception):
        return "ran when everything was stopped"
    text = str(error)
    if isinstance(error, CommandError | BadLine | TimeoutError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _of_success(value: Any) -> str:
    """The first line that a command printed, and how many there are; or what was returned."""
    if not _is_of_command(value):
        return "" if value is None else _text(value)
    lines = [line for line in value["stdout"].splitlines() if line.strip()]
    if len(lines) < 2:
        return lines[0].strip() if lines else ""
    return f"{lines[0].strip()} (+{plural(len(lines) - 1, 'line')})"


def _is_of_command(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and value.keys() == {"exit", "stdout", "stderr"}  # pyright: ignore[reportUnknownMemberType]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _shortened(text: str) -> str:
    # With it comes rich, which is slow to import, and only tables need it.
    from ungil.report.units import plain

    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}…"
    return plain(" ".join(text.split()))


def _cut(text: str) -> Any:
    """A cell that gives way to all others: it ends where the terminal does."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")


def _print(table: Any) -> None:
    from rich.console import Console

    # Programs that read this look for lines, however long.
    width = None if sys.stdout.isatty() else 1000
    Console(file=sys.stdout, highlight=False, width=width).print(table)
