"""Consoles of rich: how wide what ungil prints is where there is no terminal."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console

WIDTH_OF_A_FILE = 120
WIDTH_OF_A_LINE = 1000


def page_console(file: TextIO) -> Console:
    """For people: as wide as the terminal, or COLUMNS, or `WIDTH_OF_A_FILE` without both."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_A_FILE
    return console


def line_console(file: TextIO) -> Console:
    """For people and programs: off a terminal every row is one line, up to `WIDTH_OF_A_LINE`."""
    width = None if file.isatty() else WIDTH_OF_A_LINE
    return Console(file=file, highlight=False, width=width)
