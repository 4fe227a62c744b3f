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
@click.option("--green", is_flag=True, help="Run all threads as green threads, with gevent.")
@click.option("--env", "as_environment", is_flag=True, help="Print the variables, and run nothing.")
@click.option(
    "--standby", is_flag=True, help="Only load the hook, so that other commands can wake it later."
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
    ungil becomes the program: process id, exit status and signals are those of the program.
    Nothing is recorded.

    \b
    interactive  threads that use little of the GIL go first, at once
    fair         equal shares, a quantum at a time
    batch        equal shares, a long quantum, few handoffs
    priority     threads of a higher level go first, see --priority
    stock        CPython's own rules

    `ungil policy PID NAME` changes the policy later.

    PROGRAM need not be Python: it may load a Python, or start one. A free-threaded Python is
    scheduled while its GIL is on. A Python that ungil cannot schedule (older than 3.7, or PyPy)
    runs as usual, and a line on stderr says so.

    With --green, all threads of the program take turns in one thread, which switches where they
    wait. Nobody waits for the GIL, and no policy applies. Children run as usual. The program's
    Python needs gevent (for ungil's own: pip install "ungil[green]"); docs/green.md has the limits.

    With --standby, the hook is loaded and does nothing, at no cost, until `ungil trace --pid`,
    `dump`, `top` or `policy` wakes it. They need no privilege then.

    Variables stand in for options that are not given: UNGIL_POLICY, UNGIL_QUANTUM, and
    UNGIL_PRIORITY with one PATTERN=LEVEL per line. --env prints all that a program needs as
    NAME=VALUE lines, quoted for a shell: for `env $(ungil run --env) PROGRAM`, or for an
    `EnvironmentFile` of systemd.
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
