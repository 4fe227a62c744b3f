"""`ungil dump`: the command."""

from __future__ import annotations

import json
import sys

import click

from ungil.cli.command import Command, process_number
from ungil.cli.completing import processes
from ungil.cli.dump.taken import dumps
from ungil.cli.dump.told import as_data, print_dump
from ungil.cli.proc import family
from ungil.console import line_console

EXAMPLES = """\
  ungil dump 4711                      who holds its GIL, who waits, and where are they?
  ungil dump 4711 --children           its children, too: a server and its workers
  ungil dump 4711 --json               the same for programs
"""

SCHEMA = 1
"""Of what --json prints."""


@click.command(cls=Command, name="dump", examples=EXAMPLES)
@click.argument("pid", callback=process_number, shell_complete=processes)
@click.option("--children", is_flag=True, help="Also the descendants of PID that are Python.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(pid: int, children: bool, as_json: bool) -> None:
    """Say who holds the GIL of process PID now, for how long, who waits for it, and where each is.

    PID is any running CPython, also one that began without ungil; it goes on. ungil looks at it for
    a tenth of a second, or for a second where a policy is in force, and leaves it as it was. A hold
    or a wait that began before is said to last "at least" so long.
    """
    found = dumps(list(family(pid)) if children else [pid])
    if as_json:
        print(json.dumps({"schema": SCHEMA, "processes": [as_data(it) for it in found]}))
        return
    console = line_console(sys.stdout)
    for index, dump in enumerate(found):
        if index:
            console.print()
        print_dump(console, dump)
