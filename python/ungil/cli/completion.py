"""`ungil completion`: the script that makes a shell complete what begins with `ungil`."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ungil.cli.command import Command
from ungil.cli.commands import COMPLETES
from ungil.cli.commands import command as group
from ungil.errors import UsageError

EXAMPLES = """\
  source <(ungil completion bash)                                 in ~/.bashrc
  source <(ungil completion zsh)                                  in ~/.zshrc, after compinit
  ungil completion fish > ~/.config/fish/completions/ungil.fish   once
"""

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command, name="completion", examples=EXAMPLES)
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def command(shell: str | None) -> None:
    """Print the script that makes SHELL complete commands and options [default: by $SHELL]."""
    print(script(shell or _own_shell()), end="")


def script(shell: str) -> str:
    """The script for `shell`, one of `SHELLS`."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind(group, {}, "ungil", COMPLETES).source().strip() + "\n"


def _own_shell() -> str:
    """The user's shell; UsageError if that is none of `SHELLS`."""
    name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        shells = f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}"
        raise UsageError(f"SHELL is {name or 'not set'}; name the shell: {shells}")
    return name
