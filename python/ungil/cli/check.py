"""`ungil check`: run a program, and fail if it keeps the GIL, or waits for it, for too long."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import click

from ungil._native import Child, Recorder
from ungil.cli.command import ProgramCommand
from ungil.cli.completing import files
from ungil.cli.overwriting import distinct, files_of, no_stream, spare
from ungil.cli.program import Program, find_program
from ungil.cli.streams import fail, say
from ungil.cli.trace.nested import warn_if_recorded
from ungil.cli.trace.outputs import json_file, what_is_missing
from ungil.errors import UsageError
from ungil.formatting import duration, plural, printable, reason
from ungil.limits import Judged, Limits
from ungil.recorder import LONG_HOLD_MS, new_recorder, recorded

EXAMPLES = """\
  ungil check --max-hold 50ms app.py            no thread may keep the GIL from others for longer
  ungil check --max-wait 100ms -m app           no thread may wait longer for the GIL
  ungil check --max-hold 50ms --json kept.json -- ./run-load.sh
                                                ungil's own options come first

exit status: 0 within the limits, 1 a limit exceeded, 2 wrong usage or nothing to judge,
             3 within the limits, but the program failed
"""

BROKEN, FAILED = 1, 3
"""Exit statuses: a limit is broken; none is, but the program has failed."""
SENTENCES = 10
"""As many holds and waits are told on the screen, at most; the JSON has them all."""


@click.command(
    cls=ProgramCommand, name="check", examples=EXAMPLES, options_metavar="[OPTIONS] [--]"
)
@click.option(
    "--max-hold",
    metavar="TIME",
    help="How long a thread may keep the GIL after another one asks for it, such as 50ms or 1s. A "
    "thread asks once it has waited for a switch interval.",
)
@click.option("--max-wait", metavar="TIME", help="How long a thread may wait for the GIL.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    shell_complete=files,
    help="Also write the result as JSON ('-': stdout).",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="Keep the trace, for `ungil report`.",
)
@click.option("--no-children", is_flag=True, help="Judge the program alone, not its children.")
@click.argument(
    "words", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED, shell_complete=files
)
def command(
    max_hold: str | None,
    max_wait: str | None,
    json_path: str | None,
    output: str | None,
    no_children: bool,
    words: tuple[str, ...],
) -> int:
    """Run PROGRAM, and fail if a thread holds the GIL, or waits for it, longer than a limit.

    A hold counts from the moment when another thread asks for the GIL. Time in which the kernel ran
    something else does not count, so a busy machine does not make the check fail.
    """
    if max_hold is None and max_wait is None:
        raise UsageError("no limit was given; pass --max-hold 50ms, --max-wait 50ms, or both")
    limits = Limits.parse(max_hold, max_wait, ("--max-hold", "--max-wait"))
    program = find_program(words, "check")
    no_stream(output)
    distinct(("the trace", output), ("the JSON", json_path))
    spare(files_of(program), "the program", [output, json_path])
    with json_file(json_path) as write_json, tempfile.TemporaryDirectory(prefix="ungil-") as folder:
        recorder = _recorder(output, str(Path(folder, "check.pftrace")), limits, no_children)
        status, report = _run(program, recorder)
        judged = Judged.read(recorder.judged())
        if all(process["not_recorded"] for process in report["processes"]):
            why = [process["not_recorded"] for process in report["processes"]]
            why += [finding["text"] for finding in report["findings"]]
            return fail(
                f"nothing was recorded, so there is nothing to judge: {printable(why[0])}", 2
            )
        broken = limits.broken(judged)
        write_json(json.dumps(_result(limits, broken, judged, status, report), indent=2))
        if output is not None and recorder.incomplete is not None:
            say(what_is_missing(output, *recorder.incomplete))
    return _tell(broken, status, report, limits)


def _recorder(output: str | None, path: str, limits: Limits, no_children: bool) -> Recorder:
    """A recorder that writes to `output`, or for a moment to `path`."""
    hold_ms, _ = limits.least_ms
    try:
        return new_recorder(
            output or path,
            # What is half as long has its line already.
            blame_after_ms=min(hold_ms, LONG_HOLD_MS),
            follow_children=not no_children,
            judged_from_ms=limits.least_ms,
        )
    except FileExistsError as error:
        raise UsageError(f"{output!r} exists; name another file with -o") from error
    except OSError as error:
        raise UsageError(f"cannot write {output or path!r}: {reason(error)}") from error


def _run(program: Program, recorder: Recorder) -> tuple[int, dict[str, Any]]:
    """The program's status, negative for the signal that ended it, and the report."""
    environment = recorded(recorder, os.environ)
    warn_if_recorded(program)
    with Child() as child:
        try:
            child.start(program.executable, program.argv, environment)
        except OSError as error:
            raise UsageError(f"cannot start {program.argv[0]!r}: {reason(error)}") from error
        recorder.start(program.executable)
        status = child.wait()
        return status, json.loads(recorder.stop())


def _result(
    limits: Limits,
    broken: list[dict[str, Any]],
    judged: Judged,
    status: int,
    report: dict[str, Any],
) -> dict[str, Any]:
    """The JSON."""
    return {
        "kept": not broken,
        "max_hold_ms": limits.max_hold_ns and limits.max_hold_ns / 1e6,
        "max_wait_ms": limits.max_wait_ns and limits.max_wait_ns / 1e6,
        "broken": broken,
        "waited_ms": judged.waited_ms,
        "own_ms": judged.own_ms,
        "status": status,
        "lost_events": report["lost_events"],
        "notes": report["notes"],
    }


def _tell(broken: list[dict[str, Any]], status: int, report: dict[str, Any], limits: Limits) -> int:
    """Say what came out, and return the exit status."""
    for it in broken[:SENTENCES]:
        say(printable(it["sentence"]))
    if len(broken) > SENTENCES:
        say(f"and {len(broken) - SENTENCES:,} more")
    if report["lost_events"]:
        say(f"{plural(report['lost_events'], 'event')} were lost, so some holds are not judged")
    if not broken and (unasked := _unasked(report, limits)):
        say(unasked)
    if status:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        say(f"the program ended with {how}")
    if broken:
        return BROKEN
    return FAILED if status else 0


def _unasked(report: dict[str, Any], limits: Limits) -> str:
    """A sentence about long holds that nothing is known of, because nobody waited; or nothing."""
    if limits.max_hold_ns is None:
        return ""
    longest_s: list[float] = []
    for process in report["processes"]:
        # Nobody can wait before there is a second thread.
        alone_until_s = process["started_s"] + (process["startup_s"] or 0)
        for hold in (hold for gil in process["gils"] for hold in gil["long_holds"]):
            ms = hold["duration_ms"] if hold["cpu_ms"] is None else hold["cpu_ms"]
            is_late = hold["start_s"] >= alone_until_s
            if is_late and not hold["contended"] and ms > limits.max_hold_ns / 1e6:
                longest_s.append(ms / 1e3)
    if not longest_s:
        return ""
    return (
        f"in {plural(len(longest_s), 'hold')} longer than {limits.max_hold} no thread waited, so "
        "it is unknown whether the holder would have released the GIL; the longest was "
        f"{duration(max(longest_s))}"
    )
