"""Charts as SVG, drawn by matplotlib.

They are drawn about as wide as a phone, so that their text is readable there, and grow with the
page. Colours are written as CSS variables and text as text, so the page decides how they look in
the light and in the dark.
"""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ungil.errors import UsageError
from ungil.formatting import at_most_three_digits
from ungil.lab.experiment import Chart, Kind, Series

# matplotlib's own types leave much of it unknown.
Axes = Any

WIDTH_IN = 4.4
# Of a row of bars or of a lane, of a chart of lines, and of what is around either.
ROW_IN, LINES_IN, AROUND_IN = 0.17, 2.4, 0.9

# What a line of a legend has room for.
LEGEND_LETTERS = 54

# matplotlib writes a colour as its number; each of these numbers stands for a variable of the page.
INK, FAINT, NONE = "#0a0001", "#0a0002", "none"
COLOURS: dict[Kind, tuple[str, ...]] = {
    "published": ("#0a0010",),
    "stock": ("#0a0020", "#0a0021", "#0a0022", "#0a0023"),
    "ungil": ("#0a0030", "#0a0031", "#0a0032", "#0a0033"),
}
WHO = ("#0a0040", "#0a0041")
VARIABLES = {
    INK: "--ink",
    FAINT: "--faint",
    **{
        colour: f"--{kind}-{number}"
        for kind, colours in COLOURS.items()
        for number, colour in enumerate(colours)
    },
    **{colour: f"--who-{number}" for number, colour in enumerate(WHO)},
}
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    # Otherwise the names of clipping paths differ from run to run.
    "svg.hashsalt": "ungil",
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "figure.facecolor": NONE,
    "axes.facecolor": NONE,
    "savefig.facecolor": NONE,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
}


def check() -> None:
    """UsageError, which says what to install, if there is nothing to draw with."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise UsageError("--html draws with matplotlib: pip install 'ungil[lab]'") from error


def svg(chart: Chart) -> str:
    """The chart as an SVG element without a size of its own; "" if it has nothing to show."""
    mpl: Any = importlib.import_module("matplotlib")
    figures: Any = importlib.import_module("matplotlib.figure")
    draw = {"bars": _bars, "lines": _lines, "timeline": _timeline}[chart.kind]
    if not (chart.spans or any(y is not None for series in chart.series for y in series.y)):
        return ""
    with mpl.rc_context(STYLE):
        figure = figures.Figure(figsize=(WIDTH_IN, _height_in(chart)), layout="constrained")
        draw(chart, figure.add_subplot())
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return _for_the_page(written.getvalue())


def _for_the_page(text: str) -> str:
    """What matplotlib wrote, as part of a page: without a size, in the colours of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub("|".join(VARIABLES), lambda found: f"var({VARIABLES[found[0]]})", text.strip())


def _height_in(chart: Chart) -> float:
    if chart.kind == "lines":
        return LINES_IN
    if chart.kind == "timeline":
        rows = len(dict.fromkeys(span.lane for span in chart.spans)) * 1.6
    else:
        rows = sum(len(series.x) for series in chart.series)
    return max(1.2, rows * ROW_IN + AROUND_IN)


def _coloured(series: Sequence[Series]) -> Iterable[tuple[Series, str]]:
    """Each with a colour of its kind."""
    used: dict[Kind, int] = {}
    for one in series:
        colours = COLOURS[one.kind]
        number = used.setdefault(one.kind, 0)
        used[one.kind] += 1
        yield one, colours[number % len(colours)]


def _bars(chart: Chart, axes: Axes) -> None:
    """Horizontal, for names are longer than a phone is wide; the first on top."""
    names = list(dict.fromkeys(str(x) for series in chart.series for x in series.x))
    at = 0.0
    ticks: list[float] = []
    places: dict[tuple[str, str], float] = {}
    for name in names:
        mine = [series.name for series in chart.series if name in map(str, series.x)]
        ticks.append(at + (len(mine) - 1) / 2)
        for series in mine:
            places[name, series] = at
            at += 1
        at += 0.6
    for series, colour in _coloured(chart.series):
        points = [
            (places[str(x), series.name], y)
            for x, y in zip(series.x, series.y, strict=True)
            if y is not None
        ]
        drawn = axes.barh(
            [place for place, _ in points],
            [y for _, y in points],
            height=0.85,
            color=colour,
            label=series.name,
        )
        axes.bar_label(drawn, [at_most_three_digits(y) for _, y in points], padding=2, fontsize=7)
    axes.set_yticks(ticks, names)
    axes.invert_yaxis()
    axes.set_xlabel(chart.y_label)
    if chart.log_y:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12)
    axes.tick_params(axis="y", length=0)
    _legend(chart, axes)


def _lines(chart: Chart, axes: Axes) -> None:
    for series, colour in _coloured(chart.series):
        points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=colour,
            label=series.name,
            marker="o",
            markersize=3,
            linewidth=1.4,
            linestyle="--" if series.kind == "published" else "-",
        )
    if chart.log_y:
        axes.set_yscale("log")
        # Whole decades: only they have labels. A zero has no place among them.
        low, high = axes.dataLim.intervaly
        if low > 0:
            axes.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    axes.grid(axis="y")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    _legend(chart, axes)


def _timeline(chart: Chart, axes: Axes) -> None:
    """A lane for each variant, in it who held when."""
    lanes = list(dict.fromkeys(span.lane for span in chart.spans))
    whos = sorted({span.who for span in chart.spans})
    for who, colour in zip(whos, WHO, strict=False):
        for number, lane in enumerate(lanes):
            spans = [span for span in chart.spans if (span.lane, span.who) == (lane, who)]
            axes.broken_barh(
                [(span.begin_ms, span.end_ms - span.begin_ms) for span in spans],
                (number - 0.35, 0.7),
                facecolor=colour,
                label=who if number == 0 else None,
            )
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.set_xlabel(chart.x_label)
    axes.tick_params(axis="y", length=0)
    _legend(chart, axes)


def _legend(chart: Chart, axes: Axes) -> None:
    """Above the chart, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1 or chart.kind != "bars":
        columns = max(1, min(3, LEGEND_LETTERS // max(map(len, labels))))
        axes.figure.legend(handles, labels, loc="outside upper left", ncols=columns)
