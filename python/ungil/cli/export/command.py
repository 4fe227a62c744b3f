"""`ungil export`: a trace in the format of another tool."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import click

from ungil._native import export_trace
from ungil.cli.command import Command
from ungil.cli.completing import files
from ungil.cli.overwriting import STREAM, spare
from ungil.cli.progress import working
from ungil.cli.report.part import Extent
from ungil.cli.report.unfinished import blamed, readable, say_cut
from ungil.cli.streams import end_with_reader, say
from ungil.cli.trace.outputs import whole_file
from ungil.errors import Error, UsageError
from ungil.formatting import duration, printable, reason

EXAMPLES = """\
  ungil export app.pftrace --format firefox       for https://profiler.firefox.com
  ungil export app.pftrace --format speedscope    for https://speedscope.app
  ungil export app.pftrace --format collapsed -o - | inferno-flamegraph > waited.svg
  ungil export app.pftrace --format sqlite        a database, as ungil report --sql asks it
  ungil export app.pftrace --format firefox --from 12:03:41 --to 12:03:51
"""

MARKERS = 500_000
"""The most that a profile has unless somebody asks: the Firefox Profiler reads its file whole."""


@dataclass(frozen=True)
class Format:
    """What can be written."""

    suffix: str
    """Of the file if no name is given."""
    opened: str
    """How people open it, for a sentence."""


FORMATS = {
    "firefox": Format(".firefox.json", "load it at https://profiler.firefox.com"),
    "speedscope": Format(".speedscope.json", "open it at https://speedscope.app"),
    "collapsed": Format(".collapsed.txt", "draw it with flamegraph.pl or inferno-flamegraph"),
    "sqlite": Format(".sqlite", "open it with sqlite3"),
}


@click.command(cls=Command, name="export", examples=EXAMPLES)
@click.argument("file", shell_complete=files)
@click.option(
    "--format",
    "name",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="The tool that the file is for.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    shell_complete=files,
    help="Write to this file; '-' is standard output [default: the name of FILE, with the format].",
)
@click.option(
    "--weight",
    type=click.Choice(["waited", "held"]),
    help="For collapsed: weigh a stack by how long others waited for it, or by how long it held "
    "[default: waited].",
)
@click.option(
    "--markers",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"For firefox: keep this many of the longest holds and waits [default: {MARKERS:,}].",
)
@click.option("--from", "begin", metavar="T", help="Start here, as in ungil report.")
@click.option("--to", "end", metavar="T", help="Stop here.")
@click.option("--last", metavar="TIME", help="Only the last 30s, 5m or 1h.")
def command(
    file: str,
    name: str,
    output: str | None,
    weight: str | None,
    markers: int | None,
    begin: str | None,
    end: str | None,
    last: str | None,
) -> None:
    """Write the trace FILE, or a part of it, in the format of another tool."""
    if last is not None and (begin is not None or end is not None):
        raise UsageError("--last cannot be combined with --from and --to")
    only = {"--weight": (weight, "collapsed"), "--markers": (markers, "firefox")}
    for option, (given, format_) in only.items():
        if given is not None and name != format_:
            raise UsageError(f"{option} is for --format {format_}; {name} has no use for it")
    found = readable(file)
    if output is None:
        output = Path(file).name.removesuffix(".pftrace") + FORMATS[name].suffix
    spare([found], "the trace", [output])
    if name == "sqlite" and (output == STREAM or _is_no_file(output)):
        raise UsageError("a database needs a file, not a stream: name one with -o")
    # What is no trace is told of before anything is written.
    with blamed(found):
        extent = Extent.of(found)
        whole = begin is None and end is None and last is None
        part = None if whole else extent.part(begin, end, last)
    say_cut(extent.cut)
    if output == STREAM:
        end_with_reader()
    kept = MARKERS if markers is None else markers
    try:
        _write(found, name, output, weight or "waited", kept, part)
    except OSError as error:
        # The trace has just been read to its end.
        place = "standard output" if output == STREAM else repr(output)
        raise Error(f"cannot write {place}: {reason(error)}") from error
    if output != STREAM:
        say(f"wrote {printable(output)!r}; {FORMATS[name].opened}")


def _is_no_file(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _write(
    trace: str,
    name: str,
    output: str,
    weight: str,
    markers: int,
    part: tuple[int, int] | None,
) -> None:
    with whole_file(output) as descriptor, working(f"writing {name}"):
        if name == "sqlite":
            from ungil.cli.database import build

            try:
                # The file has no name that could be trusted yet, but it has a number.
                build(trace, Path(f"/proc/self/fd/{descriptor}").readlink(), part)
            except sqlite3.Error as error:
                raise Error(f"cannot write {output!r}: {error}") from error
            return
        missing, missing_ns = export_trace(trace, name, descriptor, part, markers, weight)
    if missing:
        say(
            f"the {missing:,} shortest holds and waits are left out, {duration(missing_ns / 1e9)}"
            f" in all: --markers allows {markers:,}; --from and --to choose a part"
        )
