"""`ungil diff`: what changed between two sides of traces, and whether it is more than noise."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import click

from ungil.cli.command import Command, blame_after_option
from ungil.cli.completing import files
from ungil.cli.diff.sides import BETWEEN, sides
from ungil.cli.overwriting import spare
from ungil.cli.progress import progress
from ungil.cli.report.unfinished import blamed
from ungil.cli.streams import end_with_reader
from ungil.cli.trace.outputs import json_file
from ungil.comparison import Run, compare, read_run
from ungil.errors import Error
from ungil.formatting import reason

EXAMPLES = """\
  ungil diff before.pftrace after.pftrace
  ungil diff before-*.pftrace -- after-*.pftrace    several runs of each, to know the noise
  ungil diff before/ after/                         all traces in two folders
  ungil diff before/ after/ --html changes.html
  ungil diff main/ branch/ --fail-if-worse          for a CI job
"""

# What a click argument can hold and no word of a command line can.
SEPARATOR = "\0"


class DiffCommand(Command):
    """A command whose `--` stands between two sides, and options may follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep each `--` as a word."""
        words = [SEPARATOR if word == BETWEEN else word for word in args]
        return super().parse_args(ctx, words)


@click.command(cls=DiffCommand, name="diff", examples=EXAMPLES)
@click.argument(
    "files", nargs=-1, shell_complete=files, required=True, metavar="BEFORE... [--] AFTER..."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) instead of tables.")
@click.option(
    "--html", "page", metavar="OUT", shell_complete=files, help="Also write a page to this file."
)
@click.option(
    "--fail-if-worse",
    is_flag=True,
    help="Exit with 1 if threads wait longer, or a finding costs more, beyond the noise.",
)
@blame_after_option
def command(
    files: tuple[str, ...],
    as_json: bool,
    page: str | None,
    fail_if_worse: bool,
    blame_after: float,
) -> int:
    """Compare traces of a program before and after a change.

    Give several runs of each side, with `--` between the sides: the noise is how much the runs of
    one side differ. With one run of each side, ungil estimates the noise from parts of each run.
    """
    before, after = sides([BETWEEN if word == SEPARATOR else word for word in files])
    spare([*before, *after], "a trace that is compared", [page])
    # Whether the page can be written is known before minutes of reading.
    with json_file(page, starts_nothing=True) as write_page:
        runs = _read([*before, *after], blame_after)
        comparison = compare(runs[: len(before)], runs[len(before) :])
        if page is not None:
            from ungil.comparison.page import html

            try:
                write_page(html(comparison))
            except OSError as error:
                if page == "-":
                    raise
                raise Error(f"cannot write {page!r}: {reason(error)}") from error
        if page != "-":
            end_with_reader()
            if as_json:
                from ungil.comparison.data import data

                print(json.dumps(data(comparison), allow_nan=False))
            else:
                from ungil.comparison.text import print_comparison

                print_comparison(comparison, sys.stdout)
    return 1 if fail_if_worse and comparison.is_worse else 0


def _read(files: list[str], blame_after: float) -> list[Run]:
    """The runs of all files, in their order. UsageError for one that is no trace."""
    distinct = list(dict.fromkeys(files))
    with (
        progress("reading traces", len(distinct)) as done,
        ThreadPoolExecutor(max_workers=min(len(distinct), len(os.sched_getaffinity(0)))) as pool,
    ):

        def read(file: str) -> Run:
            run = _run(file, blame_after)
            done()
            return run

        runs = dict(zip(distinct, pool.map(read, distinct), strict=True))
    return [runs[file] for file in files]


def _run(file: str, blame_after: float) -> Run:
    with blamed(file):
        return read_run(file, blame_after)
