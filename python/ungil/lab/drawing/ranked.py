"""Values in rows: dots on a logarithmic axis, bars on a linear one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ungil.lab.chart import Mark, Ranked, Row, Rows
from ungil.lab.drawing.element import drawn_panel, element, grid, percent, text
from ungil.lab.drawing.marks import kinds, mark
from ungil.lab.drawing.scale import Axis, axis
from ungil.lab.units import NEVER

ROW_PX, AXIS_PX, BAR_PX = 24, 22, 14
# From the middle of a row to the base line of its text, and from a mark to its value.
BASE_PX, BESIDE_PX = 4.0, 9
# Of a letter, about, in the size that the page gives charts, and the widest column of labels.
LETTER_PX, WIDEST_PX = 6.8, 150


def panels(chart: Ranked) -> str:
    """All panels that have a row, on one axis; "" if none has."""
    shown = [panel for panel in chart.panels if panel.rows]
    rows = [row for panel in shown for row in panel.rows]
    if not rows:
        return ""
    values = [it.value for row in rows for it in row.marks]
    if chart.reference is not None:
        values.append(chart.reference)
    shared = axis(chart.scale, values)
    drawn = [_panel(chart, panel, shared, _margin_px(rows)) for panel in shown]
    return _legend(chart, rows) + grid(drawn)


def _legend(chart: Ranked, rows: Sequence[Row]) -> str:
    """Of the kinds that are there, and of the line that they are compared with."""
    return kinds({it.kind for row in rows for it in row.marks}, chart.reference_name)


def _margin_px(rows: Sequence[Row]) -> float:
    """For labels, and for a value left of the lesser of two marks."""
    label_px = min(WIDEST_PX, 10 + LETTER_PX * max(len(row.label) for row in rows))
    return label_px + (52 if any(len(row.marks) > 1 for row in rows) else 6)


def _panel(chart: Ranked, panel: Rows, shared: Axis, margin_px: float) -> str:
    height_px = ROW_PX * len(panel.rows)
    parts: list[str] = []
    for tick in shared.ticks:
        x = percent(shared.place(tick))
        parts.append(element("line", x1=x, x2=x, y1=0, y2=height_px, class_="grid"))
        parts.append(text(chart.unit.tick(tick), x, height_px + 16, "tick"))
    if chart.reference is not None:
        x = percent(shared.place(chart.reference))
        parts.append(element("line", x1=x, x2=x, y1=0, y2=height_px, class_="reference"))
    for number, row in enumerate(panel.rows):
        y = ROW_PX * (number + 0.5)
        parts.append(text(row.label, -margin_px, y + BASE_PX, "label"))
        parts += _bar(chart, row, shared, y) if chart.scale == "linear" else ()
        parts += _dots(chart, row, shared, y) if chart.scale == "log" else ()
    said = "; ".join(_said(chart, row) for row in panel.rows)
    names = chart.title, panel.title
    return drawn_panel(names, said, parts, height_px + AXIS_PX, margin_px, "plot")


def _said(chart: Ranked, row: Row) -> str:
    """A row in words."""
    told = [
        f"{chart.unit(it.value)}{' under ungil' if it.kind == 'ungil' else ''}" for it in row.marks
    ]
    return f"{row.label}: {', '.join(told)}"


def _bar(chart: Ranked, row: Row, shared: Axis, y: float) -> list[str]:
    """Bars one below the other; a row has one as a rule."""
    parts: list[str] = []
    height_px = BAR_PX / len(row.marks)
    for number, it in enumerate(row.marks):
        top = y - BAR_PX / 2 + number * height_px
        width = percent(shared.place(it.value))
        class_ = f"bar {it.kind}{' variant' if it.is_variant else ''}"
        parts.append(element("rect", x=0, y=top, width=width, height=height_px - 1, class_=class_))
        parts.append(_value(chart, it, shared, y, 6))
    return parts


def _dots(chart: Ranked, row: Row, shared: Axis, y: float) -> list[str]:
    """Dots, two of them joined, the values outside."""
    ordered = sorted(row.marks, key=lambda it: it.value)
    parts: list[str] = []
    if ordered[-1].value == NEVER and len(ordered) == 1:
        parts.append(element("line", x1=0, x2="100%", y1=y, y2=y, class_="waits"))
    elif len(ordered) > 1:
        ends = (percent(shared.place(it.value)) for it in (ordered[0], ordered[-1]))
        x1, x2 = ends
        parts.append(element("line", x1=x1, x2=x2, y1=y, y2=y, class_="between"))
    for it in ordered:
        x = percent(shared.place(it.value))
        is_hollow = it.is_variant or it.value == NEVER
        parts.append(mark(it.kind, x, y, is_variant=is_hollow))
        is_left = len(ordered) > 1 and it is ordered[0]
        parts.append(_value(chart, it, shared, y, -BESIDE_PX if is_left else BESIDE_PX))
    return parts


def _value(chart: Ranked, it: Mark, shared: Axis, y: float, beside_px: float) -> str:
    """A value, beside its mark or the end of its bar."""
    return element(
        "text",
        escape(chart.unit(it.value)),
        x=percent(shared.place(it.value)),
        y=y + BASE_PX,
        dx=beside_px,
        class_="value before" if beside_px < 0 else "value",
    )
