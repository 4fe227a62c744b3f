"""`ungil heap`: shared heaps (`ungil.share`), looked at, cleaned up and removed from outside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ungil._native import SharedHeap
from ungil.cli.command import Command, Group
from ungil.cli.heap.found import Found, find, find_all, find_named
from ungil.errors import Error, UsageError
from ungil.formatting import plural, reason, size

if TYPE_CHECKING:
    from ungil.cli.heap.tables import Row

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


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_name = click.argument("name")


@click.group(cls=Group, name="heap", examples=EXAMPLES)
def command() -> None:
    """Look at shared heaps (ungil.share), collect their garbage, remove them."""


@command.command(cls=Command, name="ls", examples=EXAMPLES)
@_json
def ls(as_json: bool) -> None:
    """List the heaps of this user: those with a name, and others as PID/FILE of a process."""
    rows = [_row(found) for found in find_all()]
    if as_json:
        _print_json(heaps=rows)
    elif rows:
        from ungil.cli.heap.tables import print_rows

        print_rows(rows)
    else:
        print("there are no heaps")


@command.command(cls=Command, name="stat", examples=EXAMPLES)
@_name
@_json
def stat(name: str, as_json: bool) -> None:
    """Say what is in heap NAME, who is attached to it and who holds which lock.

    All other processes of the heap stand still for the moment that it takes to count.
    """
    found = find(name)
    told = _opened(found).statistics(PATIENCE_S)
    if as_json:
        _print_json(name=name, **told)
    else:
        from ungil.cli.heap.tables import print_statistics

        print_statistics(name, told, PATIENCE_S)


@command.command(cls=Command, name="gc", examples=EXAMPLES)
@_name
@_json
def gc(name: str, as_json: bool) -> None:
    """Free what nobody can reach in heap NAME: cycles, and what killed processes left."""
    collected = _opened(find(name)).gc(PATIENCE_S)
    if collected is None:
        raise Error(f"{name}: a process was busy for {PATIENCE_S:g} seconds; nothing was freed")
    freed, dead = collected
    if as_json:
        _print_json(name=name, freed_bytes=freed, dead=dead)
        return
    behind = f", cleaned up behind {plural(dead, 'dead process')}" if dead else ""
    print(f"{name}: freed {size(freed)}{behind}")


@command.command(cls=Command, name="rm", examples=EXAMPLES)
@_name
@click.option("--force", is_flag=True, help="Also if it is in use, or nobody can tell.")
@_json
def rm(name: str, force: bool, as_json: bool) -> None:
    """Remove heap NAME. Processes that are attached to it keep it until they end."""
    found = find_named(name)
    row = _row(found)
    living = [process["pid"] for process in row["processes"] if process["alive"]]
    if not force:
        if row["refused"] is not None:
            raise Error(f"{row['refused']}; --force removes it, whoever uses it")
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


def _opened(found: Found) -> SharedHeap:
    """The heap, attached to; UsageError if it is gone, Error with the reason if it is refused."""
    try:
        return SharedHeap.open(found.path)
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
        told = _opened(found).statistics()
    except Error as error:
        row["refused"] = str(error)
    else:
        row["used_bytes"] = told["used_bytes"]
        row["max_bytes"] = told["max_bytes"]
        row["created"] = told["created"]
        row["processes"] = told["processes"]
    return row


def _print_json(**told: Any) -> None:
    print(json.dumps({"schema": SCHEMA, **told}))


def _who(pids: list[int]) -> str:
    shown = ", ".join(map(str, pids[:5])) + (" and others" if len(pids) > 5 else "")
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}"
