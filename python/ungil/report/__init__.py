"""The report for people: one screen, findings first.

`render` draws on any rich console; `print_report` takes care of streams that are no terminal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console

from ungil.console import page_console
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
    _print(report, file, partial(render, advice=advice))


def print_advice(report: str, file: TextIO) -> None:
    """Render what the JSON `report` advises to `file`, all of it; otherwise as `print_report`."""
    _print(report, file, render_advice)


def _print(report: str, file: TextIO, draw: Callable[[Report, Console], None]) -> None:
    console = page_console(file)
    with console.capture() as capture:
        draw(parse(report), console)
    encoding = file.encoding or "utf-8"
    text = re.sub(r" +$", "", capture.get(), flags=re.MULTILINE)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("µ", "u").encode(encoding, "replace").decode(encoding)
    file.write(text)
    file.flush()


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
