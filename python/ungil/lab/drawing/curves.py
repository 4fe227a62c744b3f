"""Values over a number, such as that of threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ungil.lab.chart import Curves, Kind, Line, Lines
from ungil.lab.drawing.element import drawn_panel, element, grid, percent, text
from ungil.lab.drawing.marks import legend, mark
from ungil.lab.drawing.scale import Axis, axis

HEIGHT_PX, AXIS_PX, MARGIN_PX = 170, 40, 58
# Left and right of the first number and the last, as shares of the width.
EDGE = 0.04


def panels(chart: Curves) -> str:
    """All panels that have a value, on the same axes; "" if none has."""
    shown = [panel for panel in chart.panels if any(_values(panel))]
    if not shown:
        return ""
    shared = axis(chart.scale, (value for panel in shown for value in _values(panel)))
    named: list[tuple[str, Kind, bool]] = [
        (line.name, line.kind, line.is_variant)
        for panel in shown
        for line in panel.lines
        if any(value is not None for value in line.values)
    ]
    drawn = [_panel(chart, panel, shared) for panel in shown]
    return legend(named) + grid(drawn)


def _values(panel: Lines) -> Iterator[float]:
    return (it for line in panel.lines for it in line.values if it is not None)


def _panel(chart: Curves, panel: Lines, shared: Axis) -> str:
    parts: list[str] = []
    for tick in shared.ticks:
        y = _y(shared, tick)
        parts.append(element("line", x1=0, x2="100%", y1=y, y2=y, class_="grid"))
        parts.append(text(chart.unit.tick(tick), -8, y + 4, "tick before"))
    for number in chart.numbers:
        parts.append(text(str(number), _x(chart, number), HEIGHT_PX + 18, "tick"))
    parts.append(text(chart.numbers_name, "50%", HEIGHT_PX + 34, "tick"))
    for line in panel.lines:
        parts += _line(chart, line, shared)
    said = "; ".join(_said(chart, line) for line in panel.lines)
    names = chart.title, panel.title
    return drawn_panel(names, said, parts, HEIGHT_PX + AXIS_PX, MARGIN_PX)


def _said(chart: Curves, line: Line) -> str:
    """A line in words: where it begins and where it ends."""
    there = [it for it in zip(chart.numbers, line.values, strict=True) if it[1] is not None]
    if not there:
        return f"{line.name}: not measured"
    ends = (there[0], there[-1])
    told = (
        f"{chart.unit(value)} at {number} {chart.numbers_name}"
        for number, value in dict(ends).items()
        if value is not None
    )
    return f"{line.name}: {', '.join(told)}"


def _line(chart: Curves, line: Line, shared: Axis) -> Iterator[str]:
    points = [
        (_x(chart, number), _y(shared, value))
        for number, value in zip(chart.numbers, line.values, strict=True)
        if value is not None
    ]
    class_ = f"curve {line.kind}{' variant' if line.is_variant else ''}"
    for (x1, y1), (x2, y2) in pairwise(points):
        yield element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)
    for x, y in points:
        yield mark(line.kind, x, y, is_variant=line.is_variant)


def _x(chart: Curves, number: int) -> str:
    share = chart.numbers.index(number) / max(1, len(chart.numbers) - 1)
    return percent(EDGE + share * (1 - 2 * EDGE))


def _y(shared: Axis, value: float) -> float:
    return round(HEIGHT_PX - 10 - shared.place(value) * (HEIGHT_PX - 20), 1)
