"""What `ungil heap` prints for people."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

from rich.table import Table
from rich.text import Text

from ungil.console import line_console
from ungil.formatting import moment, plural, size


class Row(TypedDict):
    """What is said of a heap without looking into it, or why that cannot be said."""

    name: str
    named: bool
    used_bytes: int | None
    max_bytes: int | None
    created: int | None
    processes: list[dict[str, Any]]
    refused: str | None


def print_rows(rows: list[Row]) -> None:
    """Print a line for each heap."""
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
        made = _local(row["created"] or 0)
        sizes = size(row["used_bytes"] or 0), size(row["max_bytes"] or 0)
        grid.add_row(Text(row["name"]), *sizes, made, text)
    line_console().print(grid)


def print_statistics(name: str, told: dict[str, Any], patience_s: float) -> None:
    """Print what is in a heap; `patience_s` is how long others may have been busy."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text("heap", style="bold"), Text(name))
    grid.add_row("made", _local(told["created"]))
    grid.add_row("size", f"{size(told['used_bytes'])} of at most {size(told['max_bytes'])}")
    collections = plural(told["collections"], "collection")
    grid.add_row("so far", f"{collections}, {plural(told['deaths'], 'death')} of processes")
    contents = told["contents"]
    if contents is None:
        busy = f"not counted: a process was busy for {patience_s:g} seconds"
        grid.add_row("objects", Text(busy, style="yellow"))
    else:
        for kind, found in contents["types"].items():
            if found["objects"]:
                grid.add_row(kind, f"{found['objects']:,} in {size(found['bytes'])}")
        if contents["lost_bytes"]:
            lost = f"{size(contents['lost_bytes'])}, which gc frees"
            grid.add_row("garbage", Text(lost, style="yellow"))
    for process in told["processes"]:
        threads = plural(process["threads"], "thread")
        text = Text(f"{process['pid']}, since {_local(process['since'])}, {threads}")
        if not process["alive"]:
            text = Text(f"{process['pid']}, dead, not cleaned up behind yet", style="yellow")
        grid.add_row("process", text)
    if not told["processes"]:
        grid.add_row("process", Text("none is attached", style="yellow"))
    for lock in told["locks"]:
        holder = f"held by process {lock['pid']}" if lock["pid"] else "held by a process"
        dead = "" if lock["alive"] else ", which is dead: the next one who wants it gets it"
        grid.add_row("lock", Text(f"{lock['guards']}, {holder}{dead}"))
    line_console().print(grid)


def _local(seconds: int) -> str:
    """A point in time, on this place's clock."""
    return moment(datetime.fromtimestamp(seconds).astimezone())
