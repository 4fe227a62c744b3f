"""What a shell offers for the values of arguments and options, see `ungil completion`.

A click.Path would do for files, and would convert them too: commands say themselves what is wrong
with a name. Every start of a command imports this, so what only a shell asks for is imported then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell itself finds them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def processes(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The numbers of processes that run Python, with their command lines as help."""
    from click.shell_completion import CompletionItem

    from ungil.cli import proc

    found = proc.processes() if proc.is_mounted() else []
    return [
        CompletionItem(str(it.pid), help=" ".join(it.command)[:60])
        for it in found
        if str(it.pid).startswith(incomplete) and proc.is_python(it.pid)
    ]


def policies(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of policies."""
    from click.shell_completion import CompletionItem

    # The doctor has to start without the native part.
    from ungil._native import POLICIES

    return [CompletionItem(name) for name in POLICIES if name.startswith(incomplete)]
