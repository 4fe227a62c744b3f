"""What commands have in common: help that begins with examples, and options that several have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import click

from ungil.cli.completing import policies
from ungil.errors import UsageError
from ungil.recorder import LONG_HOLD_MS

F = TypeVar("F", bound=Callable[..., Any])

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help begins with what to type next."""

    def __init__(self, *args: Any, examples: str, **kwargs: Any) -> None:
        super().__init__(*args, context_settings=_SETTINGS, **kwargs)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples first."""
        formatter.write(self.examples + "\n")
        super().format_help(ctx, formatter)


class Group(Command, click.Group):
    """Commands of commands, with such a help as well."""


class ProgramCommand(Command):
    """A command whose options end where the program begins, be it with `-m` or `-c`."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a `--` before the program, then parse as usual."""
        return super().parse_args(ctx, self.separated(args))

    def separated(self, words: Sequence[str]) -> list[str]:
        """`words` with a `--` before the program if it begins with `-m` or `-c`."""
        index = 0
        while index < len(words):
            word = words[index]
            if word == "--" or not word.startswith("-"):
                break
            if word[:2] in ("-m", "-c"):
                return [*words[:index], "--", *words[index:]]
            index += 2 if self._takes_the_next(word) else 1
        return list(words)

    def _takes_the_next(self, word: str) -> bool:
        """Whether the word after this option is its value."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        with_value = {name for it in options if not it.is_flag for name in it.opts}
        if word.startswith("--"):
            return word in with_value
        # Short flags may precede the option in the same word, and its value may follow there.
        ends = [end for end, letter in enumerate(word) if f"-{letter}" in with_value]
        return bool(ends) and ends[0] == len(word) - 1


def _milliseconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    """The number of milliseconds that `value` writes, or a sentence that says why it is none."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of milliseconds above 0")
    return number


@overload
def process_number(_ctx: click.Context, param: click.Parameter, value: str) -> int: ...
@overload
def process_number(_ctx: click.Context, param: click.Parameter, value: None) -> None: ...
def process_number(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The number of a process that `value` writes, if there is one; UsageError if it is none."""
    if value is None:
        return None
    if not re.fullmatch("[0-9]+", value) or not 0 < int(value) < 2**31:
        name = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
        raise UsageError(f"{name}: {value!r} is not a process id")
    return int(value)


blame_after_option = click.option(
    "--blame-after",
    callback=_milliseconds,
    metavar="MS",
    default=f"{LONG_HOLD_MS:g}",
    show_default=True,
    help="Show the line of code of every hold of this many milliseconds or more.",
)


def scheduling_options(default: str) -> Callable[[F], F]:
    """The options `policy`, `quantum` and `priorities`, as `Scheduling` takes them.

    What they say is looked at there, because not every command line comes through click.
    """
    options = (
        click.option(
            "--policy",
            metavar="NAME",
            shell_complete=policies,
            help="Scheduling policy: interactive, fair, batch, priority or stock "
            f"[default: {default}].",
        ),
        click.option("--quantum", metavar="MS", help="Time slice [default: 5; 100 with batch]."),
        click.option(
            "--priority",
            "priorities",
            metavar="PATTERN=LEVEL",
            multiple=True,
            help="Level (low, normal or high) of threads whose names match. The first match wins.",
        ),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
