"""Writes docs/cli.md: every command with its options and examples, from the commands themselves.

    python docs/cli.py            write it
    python docs/cli.py --check    fail, and say how, if it is not what this would write

`make man` runs it, beside docs/man.py, which writes the same for man(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import click
from command_help import (
    EXIT_STATUS,
    by_problem,
    children,
    options,
    paragraphs,
    usage,
    write_or_check,
)
from links import slug

from ungil.cli.command import Command
from ungil.cli.commands import COMMANDS, PROBLEMS

DOCUMENT = Path(__file__).resolve().parent / "cli.md"
HEAD = """\
# Every command

`make man` writes this page from the commands, and any change here goes with the next one.
`ungil COMMAND --help` says the same, and so does `man ungil`.

| to | type | what it does |
|---|---|---|"""
FOOT = """\
## Exit status

| status | meaning |
|---|---|
{}

`ungil trace` passes on the status of its program, even if the trace is incomplete.
With `--pid`, the status of an incomplete trace is 1. `ungil run` becomes its program."""
# What a reader types: an option, a command with its option, a variable.
TYPED = re.compile(
    rf"\bungil (?:{'|'.join(COMMANDS)})\b(?: --[a-z-]+)?(?: [A-Z]{{2,}}\b)*"
    r"|(?<![\w-])--?[a-zA-Z][\w-]*(?: [A-Z]{2,}\b)?"
    r"|\bungil(?:\.\w+)+(?:\(\))?|\bUNGIL_\w+|[\w-]+\.pftrace"
)


def page() -> str:
    """The whole page: a table of all commands, then a section for each problem."""
    parts = [f"{HEAD}\n{table()}"]
    for problem, commands in by_problem():
        parts.append(f"## {marked(problem)}")
        for command, context in commands:
            parts += described(command, context, level=3)
    statuses = "\n".join(f"| {status} | {means} |" for status, means in EXIT_STATUS.items())
    return "\n\n".join([*parts, FOOT.format(statuses)]) + "\n"


def table() -> str:
    """A row for each command."""
    rows: list[str] = []
    for problem, group in PROBLEMS.items():
        for number, (name, (_, does)) in enumerate(group.items()):
            row = [marked(problem) if number == 0 else "", link(f"ungil {name}"), marked(does)]
            rows.append(f"| {' | '.join(row)} |")
    return "\n".join(rows)


def link(path: str) -> str:
    """A link to the section of a command."""
    return f"[`{path}`](#{slug(path)})"


def described(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """A command: its usage, text, options and examples, and those of its own commands."""
    yield f"{'#' * level} `{context.command_path}`"
    yield fenced(f"{context.command_path} {usage(command, context)}")
    names = metavars(command, context)
    for paragraph, kept in paragraphs(command):
        yield fenced(paragraph) if kept else marked(paragraph, names)
    if isinstance(command, Command):
        yield fenced("\n".join(line.removeprefix("  ") for line in command.examples.splitlines()))
    if rows := [row(written, does, names) for written, does in options(command, context)]:
        yield "\n".join(["| option | what it does |", "|---|---|", *rows])
    for child, below in children(command, context):
        yield from described(child, below, level + 1)


def row(written: str, does: str, names: AbstractSet[str]) -> str:
    """The row of an option."""
    written, does = (text.replace("|", "\\|") for text in (written, does))
    return f"| `{written}` | {marked(' '.join(does.split()), names)} |"


def metavars(command: click.Command, context: click.Context) -> set[str]:
    """The names that a usage and options give to what the reader puts there."""
    records = [option.get_help_record(context) for option in command.params]
    written = [*command.collect_usage_pieces(context), *(it[0] for it in records if it)]
    return set(re.findall(r"\b[A-Z]{2,}\b", " ".join(written)))


def fenced(text: str) -> str:
    """Text that stays as it is."""
    return f"```\n{text}\n```"


def marked(text: str, names: AbstractSet[str] = frozenset()) -> str:
    """Text of a help as Markdown: what is to be typed is code, and no sign means anything else."""
    alone = "|".join(sorted(names, key=len, reverse=True)) or "(?!)"
    pattern = re.compile(rf"{TYPED.pattern}|(?<![\w.=])(?:{alone})(?![\w=]|\.\w)")
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        typed = pattern.sub(lambda found: f"`{found[0]}`", parts[number])
        pieces = typed.split("`")
        pieces[::2] = [re.sub(r"([*_<])", r"\\\1", plain) for plain in pieces[::2]]
        parts[number] = "`".join(pieces)
    return "`".join(parts)


if __name__ == "__main__":
    write_or_check({DOCUMENT: page()}, "Writes docs/cli.md from the commands.")
