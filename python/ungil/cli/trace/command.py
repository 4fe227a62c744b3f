"""`ungil trace`: record every GIL wait and hold of a program, which is started or runs already."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol

import click

from ungil._native import Child, Recorder, die_by
from ungil.cli.command import (
    ProgramCommand,
    blame_after_option,
    process_number,
    scheduling_options,
)
from ungil.cli.completing import files, processes
from ungil.cli.overwriting import distinct, files_of, is_same, no_stream, spare
from ungil.cli.page import html_option, writable, write
from ungil.cli.program import Program, find_program
from ungil.cli.scheduling import Scheduling, warn_if_unscheduled
from ungil.cli.streams import say, settle
from ungil.cli.trace.attached import (
    announce,
    attach,
    await_end,
    name_of,
    told_by_signals,
)
from ungil.cli.trace.flight import flight_options, new_flight, snapshots_told
from ungil.cli.trace.nested import warn_if_recorded
from ungil.cli.trace.outputs import (
    free_name,
    json_file,
    named_anew,
    snapshots_beside,
    what_is_missing,
)
from ungil.durations import parse_duration
from ungil.environment import CLOCK, POLICY
from ungil.errors import UsageError
from ungil.formatting import reason
from ungil.recorder import new_recorder, recorded

EXAMPLES = """\
  ungil trace app.py --port 8000            a script, with its arguments
  ungil trace -m pytest tests               a module
  ungil trace gunicorn -w 4 app:app         a command and its Python children
  ungil trace -o slow.pftrace -- ./run.sh   ungil's own options come first
  ungil trace --policy interactive app.py   what would it cost under another policy?
  ungil trace --pid 4711 --for 10s          a running process, for ten seconds
  ungil trace --last 30s --on 'wait>50ms' app.py
                                            for days: only the seconds before each stall
"""

# Where the processor's counter cannot be trusted although the kernel does.
MONOTONIC = "monotonic"
# Named also where nobody asks for one: what has a policy can be given another one later.
DEFAULT_POLICY = "stock"


class Create(Protocol):
    """Makes the recorder that writes a trace to `path`; raises OSError if it cannot."""

    def __call__(self, path: str, *, overwrite: bool) -> Recorder:
        """The recorder."""
        ...


@click.command(
    cls=ProgramCommand, name="trace", examples=EXAMPLES, options_metavar="[OPTIONS] [--]"
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="Trace file [default: ungil-PROGRAM.pftrace].",
)
@click.option("-f", "--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    shell_complete=files,
    help="Also write the report as JSON ('-': stdout).",
)
@html_option
@click.option(
    "--pid",
    callback=process_number,
    metavar="PID",
    shell_complete=processes,
    help="Record a running process.",
)
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    help="With --pid: how long, such as 10s or 2min [default: until Ctrl-C].",
)
@click.option("--no-children", is_flag=True, help="Record the program alone, not its children.")
@click.option("--no-native", is_flag=True, help="Do not stop threads to look up their C functions.")
@flight_options
@blame_after_option
@scheduling_options(DEFAULT_POLICY)
@click.option("-q", "--quiet", is_flag=True, help="Print no report.")
@click.argument(
    "words", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED, shell_complete=files
)
def command(
    output: str | None,
    force: bool,
    json_path: str | None,
    page: str | None,
    pid: int | None,
    duration: str | None,
    no_children: bool,
    no_native: bool,
    last: str | None,
    conditions: tuple[str, ...],
    max_files: str | None,
    blame_after: float,
    policy: str | None,
    quantum: str | None,
    priorities: tuple[str, ...],
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Run PROGRAM, record every wait for the GIL and every hold, and report what they cost.

    PROGRAM is a Python file, -m MODULE, -c CODE, or any command. It runs as it would without ungil,
    and ungil exits with its status. Its Python children are recorded, too. The report goes to
    stderr.

    With --pid, ungil records a running process (CPython 3.8 or newer), and the children
    that it forks from then on. It stops when the time is up, at Ctrl-C, or when the process ends.
    Then it takes out its hook, and the process goes on. ungil needs the right to trace the process,
    unless `ungil run --standby` started it.

    With --last, ungil is a flight recorder that can run for days. It keeps the last seconds in
    bounded memory and writes only snapshots: each to a numbered file, with a line on stderr. To get
    one, run `ungil snapshot`, or send SIGUSR2 to ungil.
    """
    if pid is not None:
        if words:
            raise UsageError(f"--pid records a running process; leave out {words[0]!r}")
        if policy is not None or quantum is not None or priorities:
            raise UsageError(
                "--pid records under the policy that the process has; ungil policy changes it"
            )
    elif duration is not None:
        raise UsageError("--for needs --pid; a PROGRAM is recorded until it ends")
    for_ns = None if duration is None else parse_duration(duration, "--for")
    program = find_program(words, "trace") if pid is None else None
    variables = Scheduling(policy, quantum, priorities).variables(DEFAULT_POLICY)
    no_stream(output)
    distinct(("the trace", output), ("the page", page), ("the JSON", json_path))
    spare(files_of(program), "the program", [output, page, json_path])
    flight = new_flight(last, conditions, max_files)
    if flight is not None and json_path is not None:
        raise UsageError(
            "--json cannot be combined with --last; ungil report --json reads a snapshot"
        )
    if flight is not None and page is not None:
        raise UsageError(
            "--html cannot be combined with --last; ungil report --html reads a snapshot"
        )
    if page is not None:
        writable(page)
    if flight is not None and force:
        raise UsageError("--force cannot be combined with --last; snapshots never replace a file")
    counter = _may_use_counter()
    if program is not None:
        warn_if_recorded(program)
        if variables[POLICY] != DEFAULT_POLICY:
            warn_if_unscheduled(program)

    def create(path: str, *, overwrite: bool) -> Recorder:
        return new_recorder(
            path,
            overwrite=overwrite,
            blame_after_ms=blame_after,
            follow_children=not no_children,
            counter=counter,
            flight=flight,
            native=not no_native,
        )

    with json_file(json_path) as write_json:
        name = _name(program, pid)
        if flight is not None:
            path = snapshots_beside(output, name)
            recorder = create(path, overwrite=False)
        elif output is None:
            path, recorder = _new_trace(name, create, [page, json_path])
        else:
            path, recorder = output, _trace_at(output, force, create)
        told = nullcontext()
        if flight is not None:
            told = snapshots_told(recorder, quiet=quiet, on_signal=program is None)
        reports: list[str] = []
        problems = _Problems()
        if pid is not None:
            with told_by_signals() as ended_by, told:
                way = attach(recorder, pid)
                if not quiet:
                    announce(pid, for_ns, way)
                await_end(pid, for_ns, ended_by)
                with problems.told("there is no report"):
                    reports.append(recorder.stop())
        status = 0
        if program is not None:
            environment = {**recorded(recorder, os.environ), **variables}
            with Child() as child:
                _start(child, program, environment, None if flight is None else recorder)
                # What it does until then waits in its rings.
                with problems.told("the program is not recorded"):
                    recorder.start(program.executable)
                with told:
                    status = child.wait()
                    with problems.told("there is no report"):
                        reports.append(recorder.stop())
        chosen = name if output is None and flight is None else None
        place, missing = _place(recorder, path, chosen)
        for report in reports if flight is None else ():
            with problems.told(f"cannot write the report to {json_path!r}"):
                write_json(report)
            if not quiet:
                with problems.told("cannot print the report"):
                    _print(recorder, report, place, blame_after)
            if page is not None:
                with problems.told("there is no page"):
                    write(place, page, blame_after)
        if missing is not None:
            say(missing)
        if program is None and (problems.are_there or missing is not None):
            status = 1
    return _as(status)


def _name(program: Program | None, pid: int | None) -> str:
    """What files are called after."""
    if program is not None:
        return program.name
    assert pid is not None
    return f"{name_of(pid)}-{pid}"


class _Problems:
    """What goes wrong once there is a program: it is said, and the rest goes on.

    The program's own exit status is to count, if it has one. So does Ctrl-C, after its end.
    """

    def __init__(self) -> None:
        self.are_there = False

    @contextmanager
    def told(self, what: str) -> Generator[None]:
        """Say what goes wrong inside, after `what`."""
        try:
            yield
        except OSError as error:
            self._tell(f"{what}: {reason(error)}")
        except Exception as error:
            self._tell(f"{what}: {error or type(error).__name__}")
        except KeyboardInterrupt:
            self._tell(f"{what}: interrupted")

    def _tell(self, sentence: str) -> None:
        self.are_there = True
        say(sentence)


def _may_use_counter() -> bool:
    """Whether times may be taken from the processor's counter."""
    clock = os.environ.get(CLOCK, "")
    if clock not in ("", MONOTONIC):
        raise UsageError(
            f"{CLOCK} is {clock!r}; set it to {MONOTONIC!r} to take all times from the "
            "kernel's clock, or unset it"
        )
    return clock != MONOTONIC


def _new_trace(program: str, create: Create, taken: Sequence[str | None]) -> tuple[str, Recorder]:
    """A recorder for a trace with a name that is free, and is not to be that of another output."""

    def create_free(path: str) -> Recorder:
        if any(other is not None and is_same(path, other) for other in taken):
            raise FileExistsError(path)
        return create(path, overwrite=False)

    try:
        return free_name(program, create_free)
    except OSError as error:
        raise UsageError(
            f"cannot write a trace to the current folder: {reason(error)}; name a file with -o"
        ) from error


def _place(recorder: Recorder, path: str, program: str | None) -> tuple[str, str | None]:
    """Where the trace that was to be `path` is, and a sentence about what it lacks.

    Two that are started together in one folder find the same name free. If the file is named after
    `program`, the one that ends later takes the next name.
    """
    if recorder.incomplete is None:
        return path, None
    why, place = recorder.incomplete
    if program is not None and place != path:
        with suppress(OSError):
            return named_anew(place, program), None
    return place, what_is_missing(path, why, place)


def _trace_at(path: str, force: bool, create: Create) -> Recorder:
    """A recorder for the trace that the user named."""
    if Path(path).exists() and not Path(path).is_file():
        # The complete trace is renamed to its name, which must not replace a device or a folder.
        raise UsageError(f"cannot write {path!r}: it is not a regular file")
    try:
        return create(path, overwrite=force)
    except FileExistsError as error:
        raise UsageError(
            f"{path!r} exists; replace it with --force or name another file with -o"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot write {path!r}: {reason(error)}") from error


def _start(
    child: Child, program: Program, environment: dict[str, str], flight: Recorder | None
) -> None:
    """Start the program; UsageError if the system refuses. What cannot be started has no trace.

    SIGUSR2 goes to the recorder `flight` if there is one.
    """
    try:
        child.start(program.executable, program.argv, environment, flight)
    except OSError as error:
        raise UsageError(f"cannot start {program.argv[0]!r}: {reason(error)}") from error


def _print(recorder: Recorder, report: str, path: str, blame_after: float) -> None:
    """The report, the first advice if it comes soon, and what to do with the trace, on stderr."""
    # Imported here because the program should not wait for it.
    from ungil.cli.advised import with_advice
    from ungil.report import print_place, print_report

    # There is a report without advice, too.
    with suppress(OSError, ValueError):
        report = with_advice(recorder.with_causes, path, blame_after)
    with suppress(OSError):
        print_report(report, sys.stderr, advice=1)
        print_place(path, sys.stderr)


def _as(status: int) -> int:
    """End as the program did: return its exit status, or die by the signal that killed it."""
    settle()
    if status >= 0:
        return status
    die_by(-status)
    return 128 - status
