"""A drawing says what its chart says: lengths, places, forms and words."""

from __future__ import annotations

import re

import pytest

from ungil.lab.chart import (
    Chart,
    Curves,
    Hold,
    Kind,
    Line,
    Lines,
    Mark,
    Ranked,
    Row,
    Rows,
    Scale,
    Strip,
    Strips,
    Timeline,
)
from ungil.lab.drawing import SYMBOLS, figure
from ungil.lab.drawing.scale import Axis, axis
from ungil.lab.units import NEVER, SECONDS

KINDS: tuple[Kind, ...] = ("published", "stock", "ungil")


def ranked(scale: Scale, *values: float) -> Ranked:
    rows = [Row(f"row {number}", [Mark(it, "stock")]) for number, it in enumerate(values)]
    return Ranked("t < u", "words", [Rows("p", rows)], SECONDS, scale)


CURVES = Curves(
    "t",
    "words",
    [Lines("p", [Line(kind, kind, [1.0, None, 100.0]) for kind in KINDS])],
    [1, 2, 3],
    "threads",
    SECONDS,
    "log",
)
HOLDS = [Hold(1, 0, 15), Hold(2, 15, 60)]
TIMELINE = Timeline("t", "words", [Strips("p", [Strip("batch", "ungil", HOLDS)])], 60)


def widths(drawn: str, class_: str) -> list[float]:
    """How wide rectangles of a class are, in percent."""
    found = re.findall(rf'<rect [^>]*width="([\d.]+)%"[^>]*class="{class_}', drawn)
    return [float(it) for it in found]


def test_a_bar_is_as_long_as_its_value() -> None:
    assert widths(figure(ranked("linear", 2.0, 1.0, 0.5)), "bar") == [100, 50, 25]


def test_only_a_linear_axis_has_bars_and_it_begins_at_zero() -> None:
    assert "<use" not in re.sub(r"<ul.*?</ul>", "", figure(ranked("linear", 2.0)))
    assert "<rect" not in figure(ranked("log", 2.0))
    assert axis("linear", [2.0, 8.0]).ticks[0] == 0
    assert axis("linear", [2.0, 8.0]).place(0) == 0


def test_what_never_came_is_beyond_all_that_did() -> None:
    shared = axis("log", [0.0002, 9.9, NEVER])
    assert shared.place(NEVER) == 1
    assert shared.place(10.0) == pytest.approx(0.8)
    assert shared.ticks[-1] == NEVER
    drawn = figure(ranked("log", 0.0002, NEVER))
    assert ">never</text>" in drawn
    assert 'class="waits"' in drawn


def test_a_logarithmic_axis_gives_each_decade_the_same_room() -> None:
    shared = axis("log", [0.001, 1.0])
    assert [round(shared.place(10.0**it), 3) for it in range(-3, 1)] == [0, 0.333, 0.667, 1]


@pytest.mark.parametrize(
    "shared",
    [
        axis(scale, values)
        for scale in ("linear", "log")
        for values in ([1e-9, 1e9], [0.94, 1.85], [6.6], [109.4], [0.001, NEVER], [0.0], [2e6, 3e6])
    ],
    ids=str,
)
def test_an_axis_has_room_for_its_labels(shared: Axis) -> None:
    assert 2 <= len(shared.ticks) <= 5
    places = [shared.place(it) for it in shared.ticks]
    assert places == sorted(places)
    assert 0 <= places[0] < places[-1] <= 1


@pytest.mark.parametrize("chart", [ranked("log", 1.0), ranked("linear", 1.0), CURVES, TIMELINE])
def test_nothing_is_scaled_and_everything_is_said(chart: Chart) -> None:
    drawn = figure(chart)
    assert "viewBox" not in drawn
    [said] = re.findall(r"<desc>(.*?)</desc>", drawn)
    assert re.search(r"1 s|15|2 holds", said)
    # Colours are the page's alone.
    assert not re.search(r"#[0-9a-f]{3,6}\"|(?:fill|stroke)=", drawn)


def test_each_kind_has_a_form_of_its_own() -> None:
    forms = re.findall(r'id="mark-(\w+)" d="([^"]+)"', SYMBOLS)
    assert [kind for kind, _ in forms] == list(KINDS)
    assert len({form for _, form in forms}) == 3


def test_a_gap_in_a_line_is_bridged_and_has_no_mark() -> None:
    drawn = re.sub(r"<ul.*?</ul>", "", figure(CURVES))
    assert len(re.findall(r'<use href="#mark-ungil"', drawn)) == 2
    assert len(re.findall(r'class="curve ungil"', drawn)) == 1


def test_a_hold_is_as_long_as_it_was_and_in_the_lane_of_its_thread() -> None:
    drawn = figure(TIMELINE)
    assert widths(drawn, "hold ungil") == [25, 75]
    first, second = (float(y) for y in re.findall(r'y="([\d.]+)" [^>]*class="hold', drawn))
    assert first < second


def test_a_chart_without_a_value_is_not_drawn() -> None:
    assert figure(ranked("log")) == ""
    empty = Lines("p", [Line("stock", "stock", [None, None, None])])
    assert figure(Curves("t", "w", [empty], [1, 2, 3], "threads", SECONDS, "log")) == ""
    assert figure(Timeline("t", "w", [Strips("p", [])], 60)) == ""


def test_words_of_others_are_text() -> None:
    assert "t &lt; u" in figure(ranked("log", 1.0))
