"""Consoles of rich, and what ungil prints on them where there is no terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TextIO

from rich.console import Console

WIDTH_OF_A_FILE = 120
WIDTH_OF_A_LINE = 1000
# Of a terminal that says it has no columns, as COLUMNS=0 does.
WIDTH_OF_A_SCREEN = 80


def page_console(file: TextIO) -> Console:
    """For people: as wide as the terminal, or COLUMNS, or `WIDTH_OF_A_FILE` without both.

    A COLUMNS that is no number of columns counts as none.
    """
    console = Console(file=file, highlight=False)
    columns = os.environ.get("COLUMNS", "")
    if not console.is_terminal and not (columns.isdecimal() and int(columns)):
        console.width = WIDTH_OF_A_FILE
    elif not console.width:
        console.width = WIDTH_OF_A_SCREEN
    return console


def line_console(file: TextIO) -> Console:
    """For people and programs: off a terminal every row is one line, up to `WIDTH_OF_A_LINE`."""
    width = None if file.isatty() else WIDTH_OF_A_LINE
    return Console(file=file, highlight=False, width=width)


def print_page(file: TextIO, draw: Callable[[Console], None]) -> None:
    """Print what is drawn on a `page_console`, without blanks at the ends of lines.

    What the encoding of `file` does not know is replaced. OSError if `file` cannot be written.
    """
    _print(page_console(file), file, draw)


def print_lines(file: TextIO, draw: Callable[[Console], None]) -> None:
    """The same on a `line_console`."""
    _print(line_console(file), file, draw)


def _print(console: Console, file: TextIO, draw: Callable[[Console], None]) -> None:
    with console.capture() as capture:
        draw(console)
    encoding = file.encoding or "utf-8"
    text = re.sub(r" +$", "", capture.get(), flags=re.MULTILINE)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("µ", "u").encode(encoding, "replace").decode(encoding)
    file.write(text)
    file.flush()
