"""What pages of all commands are made of: docs/cli.py and docs/man.py write it in their ways."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from ungil.cli.commands import PROBLEMS
from ungil.cli.commands import command as ungil_command

EXIT_STATUS = {
    "0": "All is well.",
    "1": "The work failed, or a limit was exceeded.",
    "2": "The command line is wrong; one sentence says how.",
}

Placed = tuple[click.Command, click.Context]
"""A command, and where it stands: its context knows its whole name."""


def by_problem() -> Iterator[tuple[str, list[Placed]]]:
    """Each problem, and the commands that are for it."""
    top = click.Context(ungil_command, info_name="ungil")
    by_name = {placed[1].info_name: placed for placed in children(ungil_command, top)}
    for problem, group in PROBLEMS.items():
        yield problem, [by_name[name] for name in group]


def children(command: click.Command, context: click.Context) -> Iterator[Placed]:
    """The commands of a command, if it has any."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield child, click.Context(child, info_name=name, parent=context)


def usage(command: click.Command, context: click.Context) -> str:
    """What comes after the name."""
    return " ".join(command.collect_usage_pieces(context))


def paragraphs(command: click.Command) -> Iterator[tuple[str, bool]]:
    """The text of a help by paragraph, and whether its lines stay as they are."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        if paragraph.startswith("\b"):
            yield paragraph.strip("\b\n"), True
        else:
            yield " ".join(paragraph.split()), False


def options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Each option as it is written, and what it does."""
    for option in command.params:
        record = option.get_help_record(context)
        if record and isinstance(option, click.Option):
            yield record


def write_or_check(files: Mapping[Path, str], description: str) -> None:
    """Write the files; with `--check`, exit with 1 and a sentence if one is not like that."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="fail if they differ")
    check: bool = parser.parse_args().check
    for path, text in files.items():
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not what `make man` writes: run it")
