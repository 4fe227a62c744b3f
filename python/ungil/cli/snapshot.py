"""`ungil snapshot`: write what a flight recorder keeps."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ungil._native import ask_for_snapshot
from ungil.cli import proc
from ungil.cli.command import Command, process_number
from ungil.cli.completing import files, processes
from ungil.cli.overwriting import no_stream
from ungil.cli.streams import fail
from ungil.errors import UsageError
from ungil.snapshots import sentence, written

EXAMPLES = """\
  ungil snapshot 4711                  of a program under ungil trace --last, or of that ungil
  ungil snapshot 4711 -o now.pftrace   to this file
  ungil snapshot 4711 --json           for machines: path, seconds kept
"""


@click.command(cls=Command, name="snapshot", examples=EXAMPLES)
@click.argument("pid", callback=process_number, shell_complete=processes)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="Trace file [default: a numbered one, where ungil trace runs].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a sentence.")
def command(pid: int, output: str | None, as_json: bool) -> int:
    """Write the last seconds of process PID, which a flight recorder keeps, to a trace file.

    PID is a process under `ungil trace --last`, or that ungil itself.
    """
    no_stream(output)
    path = None if output is None else str(Path(output).absolute())
    if path is not None and Path(path).exists():
        raise UsageError(f"{output!r} exists; name another file with -o")
    try:
        text = ask_for_snapshot(pid, path)
    except LookupError as error:
        if proc.is_mounted() and proc.process(pid) is None:
            raise UsageError(f"there is no process {pid}") from None
        raise UsageError(str(error)) from None
    except OSError as error:
        return fail(str(error), 1)
    snapshot = written(text)
    if snapshot["error"] is not None and not as_json:
        return fail(sentence(snapshot), 1)
    print(json.dumps(snapshot) if as_json else sentence(snapshot))
    return 1 if snapshot["error"] is not None else 0
