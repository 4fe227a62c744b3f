"""`ungil run`: run a program with its GIL scheduled."""

from __future__ import annotations

import shlex

import click

from ungil.cli.command import ProgramCommand, scheduling_options
from ungil.cli.completing import files
from ungil.cli.run.launch import DEFAULT_POLICY, Launch
from ungil.cli.scheduling import Scheduling
from ungil.errors import HookError, UsageError

EXAMPLES = """\
  ungil run app.py --port 8000                   a script, with its arguments
  ungil run --policy batch -m compileall src     a module, with few handoffs
  ungil run --priority 'worker-*=low' app.py     threads named worker-… come last
  ungil run gunicorn -w 4 --threads 8 app:app    a command and its Python children
  ungil run --green app.py                       on green threads instead: gevent
  ungil run --env                                variables for what starts elsewhere
  ungil run --env --standby                      the same, and nothing happens until you ask
"""


@click.command(cls=ProgramCommand, name="run", examples=EXAMPLES, options_metavar="[OPTIONS] [--]")
@scheduling_options(DEFAULT_POLICY)
@click.option("--no-children", is_flag=True, help="Schedule the program alone, not its children.")
@click.option("--green", is_flag=True, help="Run its threads as green threads, with gevent.")
@click.option(
    "--env", "as_environment", is_flag=True, help="Print the variables and run no program."
)
@click.option(
    "--standby", is_flag=True, help="Load the hook only, for ungil trace --pid to wake it later."
)
@click.argument(
    "words", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED, shell_complete=files
)
def command(
    policy: str | None,
    quantum: str | None,
    priorities: tuple[str, ...],
    no_children: bool,
    green: bool,
    as_environment: bool,
    standby: bool,
    words: tuple[str, ...],
) -> None:
    """Run PROGRAM with its GIL scheduled by a policy.

    PROGRAM is a Python file, -m MODULE, -c CODE, or any command.
    ungil becomes the program: process id, exit status and signals are the program's own, and
    nothing is recorded.

    \b
    interactive  who uses little of the GIL comes first, and at once
    fair         equal shares, a quantum at a time
    batch        equal shares, a long quantum: few handoffs
    priority     threads of a higher level first, see --priority
    stock        as CPython does it

    The policy can be changed later: ungil policy PID NAME.

    A Python that cannot be scheduled (older than 3.7, PyPy, of another libc) runs unscheduled, with
    a warning on stderr; a free-threaded one is scheduled while its GIL is on.
    A program that is no Python may load one, or start one. If none that can be scheduled has come
    by its end, it says so on stderr.

    --green needs gevent in the program's Python (ungil's own: pip install "ungil[green]").
    All threads of the program then take turns in one, which switches where they wait: no GIL is
    waited for, and none is scheduled. Its children run as usual. docs/green.md has the limits.

    --standby loads the hook and redirects no call, which costs nothing, until ungil trace --pid,
    ungil policy or ungil dump wakes it, for which they need no privilege then.

    Where an option is not given, its variable counts: UNGIL_POLICY, UNGIL_QUANTUM, UNGIL_PRIORITY
    (a PATTERN=LEVEL a line).
    --env prints these and what else a program needs as NAME=VALUE lines, quoted as in a shell:
    for `env $(ungil run --env) PROGRAM`, or an `EnvironmentFile` of systemd.
    """  # noqa: D301 (click keeps the lines of a paragraph that begins with a backspace)
    scheduling = Scheduling(policy, quantum, priorities)
    if standby and (policy is not None or quantum is not None or priorities or green):
        raise UsageError(
            "--standby schedules nothing until ungil policy PID NAME asks for it; leave out "
            "--policy, --quantum, --priority and --green"
        )
    launch = Launch(scheduling, words, children=not no_children, green=green, standby=standby)
    if not as_environment:
        launch.start()
    elif words:
        raise UsageError(f"--env runs no program; leave out {words[0]!r}")
    else:
        try:
            variables = launch.variables(written=True)
        except ValueError as error:
            raise HookError(str(error)) from error
        for name, value in variables.items():
            # systemd reads an EnvironmentFile as a shell would.
            print(f"{name}={shlex.quote(value)}")
