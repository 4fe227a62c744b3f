"""`ungil top`: the command."""

from __future__ import annotations

import json
import math
import sys
import time

import click

from ungil.cli.command import Command, process_number
from ungil.cli.completing import processes
from ungil.cli.top.told import as_data
from ungil.cli.top.watched import Watched
from ungil.console import print_page
from ungil.errors import UsageError

EXAMPLES = """\
  ungil top                            which processes are there? Enter looks at one
  ungil top 4711                       what do its threads do with the GIL, every second?
  ungil top 4711 --children            and those of its children: a server and its workers
  ungil top 4711 --once                one second of it, as text
  ungil top 4711 --once --json         the same for programs
"""

SCHEMA = 1
"""Of what --json prints."""
SHORTEST_S, LONGEST_S = 0.1, 60.0


def _interval(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise UsageError(
            f"--interval: {value!r} is not a number of seconds from {SHORTEST_S:g} to {LONGEST_S:g}"
        )
    return seconds


@click.command(cls=Command, name="top", examples=EXAMPLES)
@click.argument("pid", required=False, callback=process_number, shell_complete=processes)
@click.option("--children", is_flag=True, help="Include the descendants of PID, also later ones.")
@click.option(
    "--interval",
    metavar="SECONDS",
    default="1",
    show_default=True,
    callback=_interval,
    help="Time between two updates.",
)
@click.option("--once", is_flag=True, help="Look once, print that as text, and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print JSON instead of text.")
def command(pid: int | None, children: bool, interval: float, once: bool, as_json: bool) -> None:
    """Show what the threads of process PID do with the GIL: how much they hold, and wait for whom.

    PID is any running CPython, started by ungil or not; without PID, you choose one. Keys sort,
    filter and pause, or change the policy, so that you see what that does. When top ends, it takes
    everything back: the process goes on under the policy that it had.
    """
    if once or as_json:
        if not once:
            raise UsageError("--json needs --once: ungil top PID --once --json")
        if pid is None:
            raise UsageError("--once needs the process id: ungil top PID --once")
        _print_once(pid, children, interval, as_json)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("ungil top needs a terminal; ungil top PID --once does without one")
    try:
        from ungil.cli.top.app import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise UsageError(
            "ungil top needs textual: pip install 'ungil[top]'; "
            "ungil dump PID and ungil top PID --once do without it"
        ) from None
    app = Top(interval_s=interval, children=children)
    if pid is None:
        app.run()
    else:
        # Before the screen, so that a refusal is a sentence below the command.
        with Watched(pid, children=children) as watched:
            app.begin_with(watched)
            app.run()
    if app.last_words:
        print(app.last_words)


def _print_once(pid: int, children: bool, interval: float, as_json: bool) -> None:
    with Watched(pid, children=children) as watched:
        watched.figures()
        time.sleep(interval)
        shown = watched.figures()
    if not shown:
        raise UsageError(f"process {pid} has ended")
    if as_json:
        print(json.dumps({"schema": SCHEMA, "processes": [as_data(it) for it in shown]}))
        return
    from ungil.cli.top.once import print_once

    print_page(sys.stdout, lambda console: print_once(console, shown))
