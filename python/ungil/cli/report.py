"""`ungil report`: print the report of a recorded trace."""

from __future__ import annotations

import signal
import sys

import click

from ungil._native import read_trace
from ungil.cli.command import Command, blame_after_option, reason
from ungil.cli.unfinished import readable
from ungil.errors import UsageError

EXAMPLES = """\
  ungil report ungil-app.pftrace
  ungil report ungil-app.pftrace --json | jq .findings
  ungil report ungil-app.pftrace --blame-after 5
"""


@click.command(cls=Command, name="report", examples=EXAMPLES)
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) instead of tables.")
@blame_after_option
def command(file: str, as_json: bool, blame_after: float) -> None:
    """Print the report of the trace FILE.

    A trace that is not complete is read as far as it goes. Where FILE is missing, and its recorder
    was killed or is still at work, what it has written is read.
    """
    try:
        report = read_trace(readable(file), blame_after)
    except ValueError as error:
        raise UsageError(f"cannot read {file!r}: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {reason(error)}") from error
    # `ungil report FILE | head` ends quietly, as other commands do.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        print(report)
        return
    from ungil.report import print_report

    print_report(report, sys.stdout)
