"""The report for people: one screen, findings first.

`render` draws on any rich console; `print_report` takes care of streams that are no terminal.
"""

from __future__ import annotations

import os
import re
from typing import TextIO

from rich.console import Console

from ungil.report.model import Report, parse
from ungil.report.screen import render

__all__ = ["Report", "parse", "print_report", "render"]

WIDTH_OF_A_FILE = 120


def print_report(report: str, file: TextIO) -> None:
    """Render the JSON `report` to `file`, in colour if that is a terminal and NO_COLOR is not set.

    What the encoding of `file` does not know is replaced. OSError if `file` cannot be written.
    """
    console = Console(file=file, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_A_FILE
    with console.capture() as capture:
        render(parse(report), console)
    encoding = file.encoding or "utf-8"
    text = re.sub(r" +$", "", capture.get(), flags=re.MULTILINE)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("µ", "u").encode(encoding, "replace").decode(encoding)
    file.write(text)
    file.flush()
