"""Writes ungil(1), and what makes shells complete `ungil`, from the commands themselves.

    python docs/man.py            write them
    python docs/man.py --check    fail if they are not what this would write

They lie in python/ungil.data/data, and an installer puts them where man and shells look:
below share/ of the prefix. A shell that finds them there needs no `ungil completion`.
"""

from __future__ import annotations

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

import ungil
from ungil.cli.command import Command
from ungil.cli.commands import EXAMPLES
from ungil.cli.commands import command as ungil_command
from ungil.cli.completion import script

SHARE = Path(__file__).resolve().parent.parent / "python/ungil.data/data/share"


def files() -> dict[Path, str]:
    """Each file, and what is to be in it."""
    return {
        SHARE / "man/man1/ungil.1": manual(),
        SHARE / "bash-completion/completions/ungil": script("bash"),
        SHARE / "zsh/site-functions/_ungil": script("zsh"),
        SHARE / "fish/vendor_completions.d/ungil.fish": script("fish"),
    }


def manual() -> str:
    """The manual page: a section for each problem, and in it each command, see man(7)."""
    lines = [
        f'.TH UNGIL 1 "" "ungil {ungil.__version__}" "User Commands"',
        ".SH NAME",
        rf"ungil \- {said(_first_sentence(ungil_command))}",
        ".SH SYNOPSIS",
        r".B ungil",
        r"\fICOMMAND\fR [\fIARGS\fR]...",
        ".SH EXAMPLES",
        *verbatim(EXAMPLES),
    ]
    for problem, commands in by_problem():
        lines.append(f".SH {said(problem).upper()}")
        for command, context in commands:
            lines += described(command, context)
    lines += [".SH EXIT STATUS"]
    for code, means in EXIT_STATUS.items():
        lines += [".TP", code, said(means)]
    lines += [
        ".PP",
        r"\fBungil trace\fR passes on the status of its program, even if the trace is incomplete.",
        r"With \fB--pid\fR, the status of an incomplete trace is 1.",
        r"\fBungil run\fR becomes its program.",
        ".SH SEE ALSO",
        r"\fBpython3\fR(1), \fBperf\fR(1), \fBstrace\fR(1)",
    ]
    return "\n".join(lines) + "\n"


def described(command: click.Command, context: click.Context) -> list[str]:
    """A command, its text, its options and its examples, and the same of its own commands."""
    lines = [f".SS {said(context.command_path)} {said(usage(command, context))}"]
    for paragraph, kept in paragraphs(command):
        lines += verbatim(paragraph) if kept else [".PP", said(paragraph)]
    for written, does in options(command, context):
        lines += [".TP", rf"\fB{said(written)}\fR", said(does)]
    if isinstance(command, Command):
        lines += verbatim(command.examples)
    for child, below in children(command, context):
        lines += described(child, below)
    return lines


def verbatim(text: str) -> list[str]:
    """Lines that stay as they are."""
    return [".PP", ".nf", *(said(line) for line in text.rstrip("\n").split("\n")), ".fi"]


def said(text: str) -> str:
    """`text` for roff, which reads backslashes, hyphens, and dots at the beginnings of lines."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _first_sentence(command: click.Command) -> str:
    return (command.help or "").strip().partition(".")[0].removesuffix(".")


if __name__ == "__main__":
    write_or_check(files(), "Writes ungil(1) and completions for shells.")
