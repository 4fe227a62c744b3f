"""The group of all commands, as click reads it."""

from __future__ import annotations

import importlib

import click

import ungil
from ungil.cli.command import Group
from ungil.cli.streams import fail

COMMANDS = {
    "trace": "ungil.cli.trace.command",
    "snapshot": "ungil.cli.snapshot",
    "report": "ungil.cli.report.command",
    "diff": "ungil.cli.diff.command",
    "export": "ungil.cli.export.command",
    "simulate": "ungil.cli.simulate.command",
    "advise": "ungil.cli.advise",
    "check": "ungil.cli.check",
    "run": "ungil.cli.run.command",
    "policy": "ungil.cli.policy",
    "dump": "ungil.cli.dump.command",
    "top": "ungil.cli.top.command",
    "heap": "ungil.cli.heap.command",
    "fanout": "ungil.cli.fanout.command",
    "lab": "ungil.cli.lab",
    "doctor": "ungil.cli.doctor.command",
}
"""The module of each, in the order in which people need them."""

EXAMPLES = """\
  ungil trace app.py --port 8000       what does the GIL cost this program?
  ungil snapshot 4711                  write the seconds that ungil trace --last keeps of it
  ungil report ungil-app.pftrace       read it again
  ungil diff before.pftrace after.pftrace
                                       what did a change bring, and is it more than the noise?
  ungil export ungil-app.pftrace --format firefox
                                       for the Firefox Profiler, speedscope, flame graphs, SQL
  ungil simulate ungil-app.pftrace     would another policy help it, and by how much?
  ungil advise ungil-app.pftrace       what would help, and by how much?
  ungil check --max-hold 50ms app.py   fail if anything keeps the GIL longer
  ungil run app.py --port 8000         run it with its GIL scheduled
  ungil policy 4711 batch              change the policy of a running process
  ungil dump 4711                      who holds the GIL of a running process, and where?
  ungil top 4711                       the same, every second, with what it costs
  ungil heap ls                        which shared heaps are there, and who uses them?
  ungil fanout --hosts FILE -- ssh {host} uptime
                                       run something for many hosts at once
  ungil lab --quick                    published experiments about the GIL, then and now
  ungil doctor                         does it work on this machine?
"""


class Commands(Group):
    """The commands, each imported when it is asked for: a start costs what it uses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, if there is one."""
        module = COMMANDS.get(cmd_name)
        return None if module is None else importlib.import_module(module).command


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
    """What the GIL costs a running Python program, and how to schedule it better."""


def invoke(words: list[str]) -> int:
    """Run the command that `words` name and return its exit code; mistakes of `words` are told.

    What the command itself raises, it raises.
    """
    try:
        code = command.main(args=words, prog_name="ungil", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return fail(error.format_message(), 2)
    except click.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0
