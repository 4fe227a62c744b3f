"""`ungil advise`: what to do about a recorded trace, ranked by what it is predicted to gain."""

from __future__ import annotations

import json
import sys

import click

from ungil._native import read_trace
from ungil.cli.command import Command, blame_after_option
from ungil.cli.completing import files
from ungil.cli.report.unfinished import blamed, readable, say_cut
from ungil.cli.streams import end_with_reader

EXAMPLES = """\
  ungil advise ungil-app.pftrace
  ungil advise ungil-app.pftrace --json | jq -r '.advice[0].action.shell'
"""


@click.command(cls=Command, name="advise", examples=EXAMPLES)
@click.argument("file", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) instead of text.")
@blame_after_option
def command(file: str, as_json: bool, blame_after: float) -> None:
    """Say what to do about the trace FILE, how much it would gain, and how certain that is.

    ungil tries each piece of advice in a simulation of the trace. If threads do not wait for the
    GIL, it says so, and names what they wait for as far as the trace shows that. docs/advise.md
    lists the kinds of advice, and describes the JSON.
    """
    path = readable(file)
    if sys.stderr.isatty():
        click.echo("simulating ...\r", err=True, nl=False)
    try:
        with blamed(path):
            report = read_trace(path, blame_after, advise=True)
    finally:
        if sys.stderr.isatty():
            click.echo("              \r", err=True, nl=False)
    from ungil.report.model import cut_of  # which brings rich

    told = json.loads(report)
    say_cut(cut_of(told["notes"]))
    end_with_reader()
    if as_json:
        print(json.dumps({"trace": path, **told["advised"]}))
        return
    from ungil.report import print_advice

    print_advice(report, sys.stdout)
