"""Who held when: a strip for each variant, in it a lane for each of two threads.

A cover lies over the strips. It is not there until the reader ticks a box; then it is drawn away
to the right, and the battle can be watched. That is done by the style sheet alone.
"""

from __future__ import annotations

from ungil.lab.chart import Kind, Strip, Strips, Timeline
from ungil.lab.drawing.element import drawn_panel, element, grid, percent, text
from ungil.lab.drawing.marks import kinds
from ungil.lab.drawing.scale import Linear

STRIP_PX, LANE_PX, AXIS_PX, MARGIN_PX = 34, 13, 36, 112
PLAYED_S = 12
"""How long the battle takes to watch; the style sheet says the same."""


def panels(chart: Timeline) -> str:
    """All panels that have a hold, beside the same time, and what plays them; "" if none has."""
    shown = [panel for panel in chart.panels if any(strip.holds for strip in panel.strips)]
    if not shown:
        return ""
    strips = [strip for panel in shown for strip in panel.strips]
    there: set[Kind] = {strip.kind for strip in strips}
    slower = round(PLAYED_S * 1000 / chart.length_ms)
    play = element(
        "label",
        '<input type="checkbox">',
        f" Play it, {slower} times slower than it was",
        class_="play",
    )
    drawn = [_panel(chart, panel) for panel in shown]
    return kinds(there) + play + grid(drawn)


def _panel(chart: Timeline, panel: Strips) -> str:
    time = Linear(chart.length_ms)
    height_px = STRIP_PX * len(panel.strips)
    holds = (f"{strip.label}: {len(strip.holds)} holds" for strip in panel.strips)
    said = f"In {chart.length_ms:g} ms, {'; '.join(holds)}"
    parts: list[str] = []
    for tick in time.ticks:
        x = percent(time.place(tick))
        parts.append(element("line", x1=x, x2=x, y1=0, y2=height_px, class_="grid"))
        parts.append(text(f"{tick:g}", x, height_px + 16, "tick"))
    parts.append(text("ms", "50%", height_px + 32, "tick"))
    for number, strip in enumerate(panel.strips):
        top = STRIP_PX * number
        parts.append(text(strip.label, -MARGIN_PX, top + STRIP_PX / 2 + 4, "label"))
        parts += _holds(strip, time, top + (STRIP_PX - 2 * LANE_PX) / 2)
    parts.append(element("rect", x=0, y=0, width="100%", height=height_px, class_="cover"))
    names = chart.title, panel.title
    return drawn_panel(names, said, parts, height_px + AXIS_PX, MARGIN_PX)


def _holds(strip: Strip, time: Linear, top: float) -> list[str]:
    """The holds of thread 1 above those of thread 2."""
    return [
        element(
            "rect",
            x=percent(time.place(hold.begin_ms)),
            width=percent(time.place(hold.end_ms - hold.begin_ms)),
            y=top + (hold.thread - 1) * LANE_PX,
            height=LANE_PX - 2,
            class_=f"hold {strip.kind}",
        )
        for hold in strip.holds
    ]
