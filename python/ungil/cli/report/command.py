"""`ungil report`: print the report of a recorded trace."""

from __future__ import annotations

import sys

import click

from ungil._native import read_trace
from ungil.cli.advised import how_advised
from ungil.cli.command import Command, blame_after_option
from ungil.cli.completing import files
from ungil.cli.overwriting import STREAM, spare
from ungil.cli.page import html_option, writable, write
from ungil.cli.report.part import Extent
from ungil.cli.report.unfinished import blamed, readable
from ungil.cli.streams import end_with_reader, print_json
from ungil.errors import UsageError

EXAMPLES = """\
  ungil report ungil-app.pftrace
  ungil report ungil-app.pftrace --json | jq .findings
  ungil report ungil-app.pftrace --html app.html
  ungil report ungil-app.pftrace --blame-after 5
  ungil report ungil-app.pftrace --from 12:03:41 --to 12:03:51
  ungil report ungil-app.pftrace --last 30s
  ungil report ungil-app.pftrace --sql 'SELECT thread, max(waited_ns) FROM named_waits GROUP BY 1'
"""


@click.command(cls=Command, name="report", examples=EXAMPLES)
@click.argument("file", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) instead of tables.")
@html_option
@blame_after_option
@click.option(
    "--from",
    "begin",
    metavar="T",
    help="Start here: seconds from the start, 12:03:41, or a date and time.",
)
@click.option("--to", "end", metavar="T", help="Stop here.")
@click.option("--last", metavar="TIME", help="Only the last 30s, 5m or 1h.")
@click.option(
    "--sql", metavar="QUERY", help="Query the trace as a database; .schema prints its tables."
)
@click.option(
    "--advise/--no-advice",
    default=None,
    help="Say what to do about it [default: without a simulation for traces of more than 4 MB].",
)
def command(
    file: str,
    as_json: bool,
    page: str | None,
    blame_after: float,
    begin: str | None,
    end: str | None,
    last: str | None,
    sql: str | None,
    advise: bool | None,
) -> None:
    """Print the report of the trace FILE, or of a part of it.

    An incomplete trace is read as far as it goes. If FILE is missing because its recorder was
    killed or still runs, ungil reads what that has written so far.

    With --html, ungil writes a page instead of printing tables, and replaces an older one.
    """
    if last is not None and (begin is not None or end is not None):
        raise UsageError("--last cannot be combined with --from and --to")
    if sql is not None and page is not None:
        raise UsageError("--sql cannot be combined with --html")
    if as_json and page == STREAM:
        raise UsageError("the JSON and the page cannot both be written to '-'")
    file = readable(file)
    spare([file], "the trace", [page])
    if page is not None:
        writable(page)
    with blamed(file):
        part = None
        if begin is not None or end is not None or last is not None:
            part = Extent.of(file).part(begin, end, last)
    if sql is not None:
        from ungil.cli.report.sql import answer

        end_with_reader()
        answer(file, sql, part, as_json, sys.stdout)
        return
    with blamed(file):
        if page is None:
            report = read_trace(file, blame_after, part, **how_advised(file, advise))
        else:
            report = write(file, page, blame_after, part, advise)
    end_with_reader()
    if as_json:
        print_json(report)
        return
    if page is not None:
        return
    from ungil.report import print_report

    print_report(report, sys.stdout)
