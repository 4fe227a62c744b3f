"""`ungil heap`: shared heaps (`ungil.share`), looked at, cleaned up and removed from outside."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypedDict

import click

from ungil.cli.command import Command, Group
from ungil.cli.heap.found import Found, find, find_all, find_named
from ungil.errors import Error, UsageError
from ungil.formatting import moment, plural, reason, size
from ungil.share import Heap, Statistics

EXAMPLES = """\
  ungil heap ls             which heaps are there, how large, who uses them?
  ungil heap stat cache     what is in it, who is attached, who holds which lock?
  ungil heap stat 4711/5    a heap without a name: process 4711 has it open as file 5
  ungil heap gc cache       free what nobody can reach
  ungil heap rm cache       remove it
"""

# How long others may be busy, in a transaction for example, until it is said that they are.
PATIENCE_S = 10.0
# Of what --json prints.
SCHEMA = 1


class Row(TypedDict):
    """What is said of a heap without looking into it, or why that cannot be said."""

    name: str
    named: bool
    used_bytes: int | None
    max_bytes: int | None
    created: int | None
    processes: list[dict[str, Any]]
    refused: str | None


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_name = click.argument("name")


@click.group(cls=Group, name="heap", examples=EXAMPLES)
def command() -> None:
    """Look at shared heaps (ungil.share), collect their garbage, remove them."""


@command.command(cls=Command, name="ls", examples=EXAMPLES)
@_json
def ls(as_json: bool) -> None:
    """List the heaps of this user: those with a name, and others as `PID/FILE` of a process."""
    rows = [_row(found) for found in find_all()]
    if as_json:
        _print_json(heaps=rows)
    elif rows:
        _print_rows(rows)
    else:
        print("there are no heaps")


@command.command(cls=Command, name="stat", examples=EXAMPLES)
@_name
@_json
def stat(name: str, as_json: bool) -> None:
    """Say what is in heap NAME, who is attached to it and who holds which lock.

    The other processes of the heap pause while ungil counts.
    """
    found = find(name)
    told = _opened(found).statistics(patience=PATIENCE_S)
    if as_json:
        _print_json(name=name, **asdict(told))
    else:
        _print_statistics(name, told)


@command.command(cls=Command, name="gc", examples=EXAMPLES)
@_name
@_json
def gc(name: str, as_json: bool) -> None:
    """Free what nobody can reach in heap NAME: cycles, and what killed processes left."""
    collected = _opened(find(name)).gc(patience=PATIENCE_S)
    if collected is None:
        raise Error(f"{name}: a process was busy for {PATIENCE_S:g} seconds; nothing was freed")
    if as_json:
        _print_json(name=name, **asdict(collected))
        return
    freed, dead = collected.freed_bytes, collected.dead
    behind = f", cleaned up after {plural(dead, 'dead process')}" if dead else ""
    print(f"{name}: freed {size(freed)}{behind}")


@command.command(cls=Command, name="rm", examples=EXAMPLES)
@_name
@click.option("--force", is_flag=True, help="Even if it is in use, or may be.")
@_json
def rm(name: str, force: bool, as_json: bool) -> None:
    """Remove heap NAME. Processes that are attached to it keep it until they end."""
    found = find_named(name)
    row = _row(found)
    living = [process["pid"] for process in row["processes"] if process["alive"]]
    if not force:
        if row["refused"] is not None:
            raise Error(f"{row['refused']}; --force removes it even if a process uses it")
        if living:
            raise Error(f"{name} is in use by {_who(living)}; --force removes its name")
    try:
        found.path.unlink()
    except FileNotFoundError:
        raise UsageError(f"there is no heap named {name!r}") from None
    if as_json:
        _print_json(name=name, removed=True, in_use_by=living)
        return
    kept = f"; {_who(living)} still {'has' if len(living) == 1 else 'have'} it" if living else ""
    print(f"{name}: removed{kept}")


def _opened(found: Found) -> Heap:
    """The heap, attached to; UsageError if it is gone, Error with the reason if it is refused."""
    try:
        return Heap.at(found.path)
    except FileNotFoundError:
        raise UsageError(f"{found.name}: the heap is gone") from None
    except OSError as error:
        raise Error(f"{found.name}: {error.strerror or reason(error)}") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        raise Error(f"{found.name}: {error}") from error


def _row(found: Found) -> Row:
    row: Row = {
        "name": found.name,
        "named": found.is_named,
        "used_bytes": None,
        "max_bytes": None,
        "created": None,
        "processes": [],
        "refused": None,
    }
    try:
        told = _opened(found).statistics(contents=False)
    except Error as error:
        row["refused"] = str(error)
    else:
        row["used_bytes"] = told.used_bytes
        row["max_bytes"] = told.max_bytes
        row["created"] = told.created
        row["processes"] = [asdict(process) for process in told.processes]
    return row


def _print_rows(rows: list[Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ungil.console import print_lines

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("HEAP", "SIZE", "AT MOST", "MADE", "PROCESSES"):
        right = title in ("SIZE", "AT MOST")
        grid.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in rows:
        if row["refused"] is not None:
            why = row["refused"].removeprefix(f"{row['name']}: ")
            grid.add_row(Text(row["name"]), "", "", "", Text(why, style="red"))
            continue
        alive = sum(process["alive"] for process in row["processes"])
        text = Text(str(alive) if alive else "none", style="" if alive else "yellow")
        if dead := len(row["processes"]) - alive:
            text.append(f", {dead} dead", style="yellow")
        made = _when(row["created"] or 0)
        sizes = size(row["used_bytes"] or 0), size(row["max_bytes"] or 0)
        grid.add_row(Text(row["name"]), *sizes, made, text)
    print_lines(sys.stdout, lambda console: console.print(grid))


def _print_statistics(name: str, told: Statistics) -> None:
    from rich.table import Table
    from rich.text import Text

    from ungil.console import print_lines

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text("heap", style="bold"), Text(name))
    grid.add_row("made", _when(told.created))
    grid.add_row("size", f"{size(told.used_bytes)} of at most {size(told.max_bytes)}")
    collections = plural(told.collections, "collection")
    grid.add_row("so far", f"{collections}, {plural(told.deaths, 'death')} of processes")
    contents = told.contents
    if contents is None:
        busy = f"not counted: a process was busy for {PATIENCE_S:g} seconds"
        grid.add_row("objects", Text(busy, style="yellow"))
    else:
        for kind, found in contents.types.items():
            if found.objects:
                grid.add_row(kind, f"{found.objects:,} in {size(found.bytes)}")
        if contents.lost_bytes:
            lost = f"{size(contents.lost_bytes)}, which gc frees"
            grid.add_row("garbage", Text(lost, style="yellow"))
    for process in told.processes:
        threads = plural(process.threads, "thread")
        text = Text(f"{process.pid}, since {_when(process.since)}, {threads}")
        if not process.alive:
            text = Text(f"{process.pid}, dead, not cleaned up yet", style="yellow")
        grid.add_row("process", text)
    if not told.processes:
        grid.add_row("process", Text("no process is attached", style="yellow"))
    for lock in told.locks:
        holder = f"held by process {lock.pid}" if lock.pid else "held by a process"
        dead = "" if lock.alive else ", which is dead: the next process that wants the lock gets it"
        grid.add_row("lock", Text(f"{lock.guards}, {holder}{dead}"))
    print_lines(sys.stdout, lambda console: console.print(grid))


def _print_json(**told: Any) -> None:
    print(json.dumps({"schema": SCHEMA, **told}))


def _when(seconds: int) -> str:
    """A point in time, on this place's clock."""
    return moment(datetime.fromtimestamp(seconds).astimezone())


def _who(pids: list[int]) -> str:
    shown = ", ".join(map(str, pids[:5])) + (" and others" if len(pids) > 5 else "")
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}"
