"""The command line: `ungil trace`, `ungil report`, `ungil doctor`, one module each.

Exit codes: 0 fine, 1 the work failed, 2 wrong usage; `ungil trace` passes on the program's own.
A mistake of the user is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from ungil.cli.command import SETTINGS, fail
from ungil.errors import Error, UsageError

COMMANDS = ("trace", "report", "doctor")

EXAMPLES = """\
  ungil trace app.py --port 8000       what does the GIL cost this program?
  ungil report ungil-app.pftrace       read it again
  ungil doctor                         does it work on this machine?
"""


class Commands(click.Group):
    """The commands, each imported when it is asked for: a start costs what it uses."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the module with that name."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"ungil.cli.{cmd_name}").command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples first."""
        formatter.write(EXAMPLES + "\n")
        super().format_help(ctx, formatter)


def _print_version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from ungil import __version__

        print(f"ungil {__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings=SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def ungil() -> None:
    """What the GIL costs a running Python program: who waits, for whom, how long."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = ungil.main(args=arguments, prog_name="ungil", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return fail(error.format_message(), 2)
    except UsageError as error:
        return fail(str(error), 2)
    except ImportError as error:
        if error.name != "ungil._native":
            raise
        return fail(f"the native part of ungil cannot be loaded ({error}); reinstall ungil", 1)
    except (Error, OSError) as error:
        return fail(str(error), 1)
    except (click.Abort, KeyboardInterrupt):
        print(file=sys.stderr)
        return 130
