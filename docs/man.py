"""Writes ungil(1), and what makes shells complete `ungil`, from the commands themselves.

    python docs/man.py            write them
    python docs/man.py --check    fail if they are not what this would write

They lie in python/ungil.data/data, and an installer puts them where man and shells look:
below share/ of the prefix. A shell that finds them there needs no `ungil completion`.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path

import click

import ungil
from ungil.cli.command import Command
from ungil.cli.commands import EXAMPLES, PROBLEMS
from ungil.cli.commands import command as ungil_command
from ungil.cli.completion import script

SHARE = Path(__file__).resolve().parent.parent / "python/ungil.data/data/share"
EXIT_STATUS = {
    "0": "All is well.",
    "1": "The work failed, or a limit was broken.",
    "2": "The command line is wrong; one sentence says how.",
}


def main() -> None:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description="Writes ungil(1) and completions for shells.")
    parser.add_argument("--check", action="store_true", help="fail if they differ")
    check: bool = parser.parse_args().check
    for path, text in files().items():
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not what `make man` writes: run it")


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
    context = click.Context(ungil_command, info_name="ungil")
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
    for problem, names in PROBLEMS.items():
        lines.append(f".SH {said(problem).upper()}")
        for name in names:
            found = ungil_command.get_command(context, name)
            assert found is not None
            lines += described(found, click.Context(found, info_name=name, parent=context))
    lines += [".SH EXIT STATUS"]
    for code, means in EXIT_STATUS.items():
        lines += [".TP", code, said(means)]
    lines += [
        ".PP",
        r"\fBungil trace\fR passes on the status of its program; \fBungil run\fR becomes it.",
        ".SH SEE ALSO",
        r"\fBpython3\fR(1), \fBperf\fR(1), \fBstrace\fR(1)",
    ]
    return "\n".join(lines) + "\n"


def described(command: click.Command, context: click.Context) -> list[str]:
    """A command, its text, its options and its examples, and the same of its own commands."""
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {said(context.command_path)} {said(usage)}"]
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        kept = paragraph.startswith("\b")
        flowing = [".PP", said(" ".join(paragraph.split()))]
        lines += verbatim(paragraph.strip("\b\n")) if kept else flowing
    for option in command.params:
        record = option.get_help_record(context)
        if record and isinstance(option, click.Option):
            lines += [".TP", rf"\fB{said(record[0])}\fR", said(record[1])]
    if isinstance(command, Command):
        lines += verbatim(command.examples)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            lines += described(child, click.Context(child, info_name=name, parent=context))
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
    main()
