"""The group of all commands, as click reads it."""

from __future__ import annotations

import importlib
import os

import click

import ungil
from ungil.cli.command import Group
from ungil.cli.streams import fail

PROBLEMS = {
    "See what the GIL costs": {
        "trace": ("ungil.cli.trace.command", "who waits for whom, how long, and what to do"),
        "report": ("ungil.cli.report.command", "read a trace again: as text, a page or JSON"),
        "check": ("ungil.cli.check", "for CI: fail if a thread keeps the GIL too long"),
        "export": (
            "ungil.cli.export.command",
            "convert it for the Firefox Profiler, speedscope or SQL",
        ),
    },
    "Look into a running process": {
        "dump": ("ungil.cli.dump.command", "who holds the GIL now, where, and who waits"),
        "top": ("ungil.cli.top.command", "the same, every second, with what it costs"),
        "snapshot": ("ungil.cli.snapshot", "save what ungil trace --last keeps in memory"),
    },
    "Decide what to change": {
        "advise": ("ungil.cli.advise", "what would help, by how much, and how certain that is"),
        "simulate": ("ungil.cli.simulate.command", "replay a trace under other rules"),
        "diff": ("ungil.cli.diff.command", "what a change improved or broke, beyond the noise"),
    },
    "Schedule the GIL better": {
        "run": ("ungil.cli.run.command", "run a program with its GIL scheduled"),
        "policy": ("ungil.cli.policy", "show or change the policy of a running process"),
    },
    "Leave the GIL: objects that processes share (ungil.share)": {
        "heap": ("ungil.cli.heap.command", "which shared heaps exist, and who uses them"),
    },
    "Need fewer threads (ungil.fanout)": {
        "fanout": ("ungil.cli.fanout.command", "run a function or command for many hosts at once"),
    },
    "ungil itself": {
        "doctor": ("ungil.cli.doctor.command", "what works on this machine, and what is missing"),
        "lab": ("ungil.cli.lab", "published experiments about the GIL, then and now"),
        "examples": ("ungil.cli.examples", "write the programs that the documents run"),
        "completion": ("ungil.cli.completion", "complete commands and options with Tab"),
    },
}
"""By the problem that it is for: each command, its module, and what it does in a few words."""

COMMANDS = {name: entry for group in PROBLEMS.values() for name, entry in group.items()}

EXAMPLES = """\
  ungil trace app.py --port 8000    what does the GIL cost this program?
  ungil advise ungil-app.pftrace    what would help, and by how much?
  ungil run app.py --port 8000      run it with its GIL scheduled
  ungil top 4711                    what is a running process doing?
"""

ELSEWHERE = {
    "attach": "ungil trace --pid PID records a running process",
    "record": "ungil trace PROGRAM records a program, and --pid PID a running process",
    "flamegraph": "ungil report FILE --html OUT.html draws one",
    "view": "ungil report FILE shows a trace",
}
"""What others call a command, and which one it is here."""

FIRST = (
    EXAMPLES
    + "  ungil --help                      all commands; ungil doctor says what is missing here\n"
)
"""What `ungil` alone says: what to do first, in five lines."""


COMPLETES = "_UNGIL_COMPLETE"
"""The variable that a shell sets when it asks for completions; click reads it."""


class Commands(Group):
    """The commands, each imported when it is asked for: a start costs what it uses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, if there is one."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else importlib.import_module(entry[0]).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name, and the words after it. UsageError says what is like it."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        # Only a mistake needs it, and its import takes as long as all else here.
        from difflib import get_close_matches

        alike = get_close_matches(name, COMMANDS, n=1)
        if name in ELSEWHERE:
            hint = ELSEWHERE[name]
        elif name.endswith(".py"):
            hint = f"ungil trace {name} records that program"
        elif alike:
            hint = f"did you mean ungil {alike[0]}?"
        else:
            hint = "ungil --help lists all"
        raise click.UsageError(f"there is no command {name!r}: {hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by the problem that they are for; none of them is imported for that."""
        width = max(map(len, COMMANDS))
        for problem, group in PROBLEMS.items():
            with formatter.section(problem):
                formatter.write_dl([(name.ljust(width), does) for name, (_, does) in group.items()])


def _print_version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        print(f"ungil {ungil.__version__}")
        ctx.exit()


@click.group(cls=Commands, name="ungil", examples=EXAMPLES)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def command() -> None:
    """What the GIL costs a running Python program, and three ways to stop paying.

    `ungil COMMAND --help` says more about each command.
    """


def invoke(words: list[str]) -> int:
    """Run the command that `words` name and return its exit code; mistakes of `words` are told.

    What the command itself raises, it raises.
    """
    if not words and COMPLETES not in os.environ:
        click.echo(FIRST, err=True, nl=False)
        return 2
    try:
        code = command.main(args=words, prog_name="ungil", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:  # A group of commands, such as heap.
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return fail(error.format_message(), 2)
    except click.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0
