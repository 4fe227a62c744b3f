"""Draws the report of a trace as the pictures that the README shows.

    python docs/picture.py TRACE

It runs `ungil report TRACE` as if on a terminal and writes what that prints to report-light.svg
and report-dark.svg beside this file.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).resolve().parent
COLUMNS, LINES = 100, 48
# The sixteen colours of GitHub's own light and dark pages, so that the picture lies flat on them.
LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (77, 45, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (110, 119, 129),
    ],
)
DARK = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (110, 118, 129),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
)


def report(trace: str) -> Text:
    """What `ungil report` prints on a terminal."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "FORCE_COLOR": "1"}
    words = [sys.executable, "-m", "ungil", "report", trace]
    printed = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True).stdout
    # Where the interpreter of this repository is says nothing to others.
    return Text.from_ansi(printed.decode().replace(f"{HERE.parent}/.venv/bin/", ""))


def picture(text: Text, theme: TerminalTheme, title: str) -> str:
    """An SVG of the text that loads nothing: a page that shows it may forbid that."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(text)
    drawn = console.export_svg(title=title, theme=theme, unique_id="report")
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    # Columns are made of spaces, which not every viewer keeps unless it is told to.
    return drawn.replace("<text ", '<text xml:space="preserve" ')


def main() -> None:
    """Draws both pictures."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/picture.py TRACE")
    text = report(sys.argv[1])
    for name, theme in ("light", LIGHT), ("dark", DARK):
        drawn = picture(text, theme, "ungil report ungil-convoy_server.pftrace")
        (HERE / f"report-{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
