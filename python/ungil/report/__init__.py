"""The report for people: one screen, findings first.

`render` draws on any rich console; `print_report` takes care of streams that are no terminal.
"""

from __future__ import annotations

import shlex
from typing import TextIO

from rich.cells import cell_len

from ungil.console import page_console, print_page
from ungil.formatting import printable
from ungil.report.advice import TOLD, render_advice
from ungil.report.model import Report, parse
from ungil.report.screen import render

__all__ = ["Report", "parse", "print_advice", "print_place", "print_report", "render"]


def print_report(report: str, file: TextIO, advice: int = TOLD) -> None:
    """Render the JSON `report` to `file`, in colour if that is a terminal and NO_COLOR is not set.

    It has so many pieces of advice at most. What the encoding of `file` does not know is replaced.
    OSError if `file` cannot be written.
    """
    print_page(file, lambda console: render(parse(report), console, advice=advice))


def print_advice(report: str, file: TextIO) -> None:
    """Render what the JSON `report` advises to `file`; otherwise as `print_report`."""
    print_page(file, lambda console: render_advice(parse(report), console))


def print_place(path: str, file: TextIO) -> None:
    """Say on `file` where the trace is and what can be done with it, a command whole on its line.

    OSError if `file` cannot be written.
    """
    name = printable(shlex.quote(path))
    page, command = "open it at https://ui.perfetto.dev", f"or with: ungil report {name}"
    lines = [f"trace: {name}", page, command]
    for fewer in ([f"trace: {name} ({page} {command})"], [lines[0], f"{page} {command}"]):
        if max(map(cell_len, fewer)) <= page_console(file).width:
            lines = fewer
            break
    print(*lines, sep="\n", file=file, flush=True)
