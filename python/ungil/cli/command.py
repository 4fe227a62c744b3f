"""What all commands have in common: help that begins with examples, and how they fail."""

from __future__ import annotations

import math
import os
import re
import sys
from typing import Any

import click

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help begins with what to type next."""

    def __init__(self, *args: Any, examples: str, **kwargs: Any) -> None:
        super().__init__(*args, context_settings=SETTINGS, **kwargs)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples first."""
        formatter.write(self.examples + "\n")
        super().format_help(ctx, formatter)


def _milliseconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    """The number of milliseconds that `value` writes, or a sentence that says why it is none."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of milliseconds above zero")
    return number


blame_after_option = click.option(
    "--blame-after",
    callback=_milliseconds,
    metavar="MS",
    default="20",
    show_default=True,
    help="A hold is long, and shown with its line of code, from this many milliseconds on.",
)


def fail(sentence: str, code: int) -> int:
    """Say what went wrong on stderr and return the exit code."""
    print(f"ungil: {sentence.rstrip('.')}", file=sys.stderr)
    return code


def reason(error: OSError) -> str:
    """Why the system refused, as a person would say it: "permission denied"."""
    text = os.strerror(error.errno) if error.errno else str(error)
    text = re.sub(r" \(os error \d+\)$", "", text)  # as Rust's std::io::Error writes it
    return text[:1].lower() + text[1:]
