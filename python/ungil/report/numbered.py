"""A numbered paragraph with lines to copy, which only the terminal may break."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

STYLE_OF_CODE = "cyan"


@dataclass(frozen=True)
class Code:
    """A line to copy: a break in it, and what is copied is another program."""

    line: str


@dataclass(frozen=True)
class Numbered:
    """Texts, and lines of code, below each other and beside a number.

    It has to be printed with `crop=False`.
    """

    number: Text
    parts: list[Text | Code]
    digits: int
    """The room for the number, and that of its siblings."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Each part, indented."""
        indent = self.digits + 1
        narrow = options.update_width(max(options.max_width - indent, 1))
        beside = self.number.copy()
        beside.pad_left(self.digits - beside.cell_len)
        beside.pad_right(1)
        for part in self.parts:
            if isinstance(part, Code):
                lines = [[Segment(part.line, console.get_style(STYLE_OF_CODE))]]
            else:
                lines = console.render_lines(part, narrow, pad=False)
            for line in lines:
                yield from beside.render(console)
                yield from line
                yield Segment.line()
                beside = Text(" " * indent)


def lines_used(console: Console, *parts: RenderableType) -> int:
    """How many lines of the console these parts take where it breaks what is too long."""
    segments = (it for part in parts for it in console.render(part))
    lengths = (Segment.get_line_length(line) for line in Segment.split_lines(segments))
    return sum(max(-(-length // console.width), 1) for length in lengths)
