"""Charts as SVG that a browser lays out: as wide as it likes, with text of one size.

A drawing has no view box, so nothing of it is ever scaled. Across, everything is placed in percent
of the width that the page gives it; down, in CSS pixels. So a chart on a phone is a narrow chart
and no small picture of a wide one, and it needs no script.

    scale      where a value is on an axis
    element    elements as text
    marks      the marks of the three kinds, and their legend
    ranked     values in rows: dots on a logarithmic axis, bars on a linear one
    curves     values over a number
    timeline   who held when

Colours and sizes of text are in the page's style sheet. There is no more here than the lab needs:
well-kept libraries draw pictures of a fixed size, or with a script in the reader's browser.
"""

from __future__ import annotations

from html import escape

from ungil.lab.chart import Chart, Curves, Ranked
from ungil.lab.drawing import curves, ranked, timeline
from ungil.lab.drawing.element import element
from ungil.lab.drawing.marks import SYMBOLS

__all__ = ["SYMBOLS", "figure", "panels"]


def figure(chart: Chart) -> str:
    """The chart, its point in words above it; "" if it has nothing to show."""
    drawn = panels(chart)
    if not drawn:
        return ""
    caption = element(
        "figcaption", element("b", escape(chart.title)), " ", escape(chart.alternative)
    )
    return element("figure", caption, drawn)


def panels(chart: Chart) -> str:
    """The panels of a chart without words around them; "" if there are none."""
    if isinstance(chart, Ranked):
        return ranked.panels(chart)
    if isinstance(chart, Curves):
        return curves.panels(chart)
    return timeline.panels(chart)
