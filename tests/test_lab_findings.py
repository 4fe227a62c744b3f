"""What is said of results is what they are: another result makes another sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import HEADER, result, results

from ungil.lab.chart import Curves, Ranked
from ungil.lab.experiments import NAMES
from ungil.lab.findings import found
from ungil.lab.findings.words import joined, longer, times_as
from ungil.lab.results import Result, load
from ungil.lab.units import COUNT, NEVER, PERCENT, SECONDS

RUN = load(Path(__file__).parent.parent / "docs" / "lab.json")


def title(experiment: str, *cells: Result) -> str:
    return found(experiment, results(*cells, header=HEADER)).title


def interrupted(python: str, variant: str, taken_s: float | None) -> Result:
    measured = {"to_interrupt_s": taken_s, "before": None, "pending": None}
    return result("interrupt", python, f"{variant}, join", **measured)


def test_ctrl_c_that_never_arrived_is_said_to_have_never_arrived() -> None:
    cells = [
        interrupted("2.7", "stock", None),
        interrupted("3.13", "stock", 0.0103),
        interrupted("3.13", "interactive", 0.00019),
    ]
    said = "Ctrl-C never arrived on 2.7; it takes 10.3 ms on 3.13 and 0.19 ms under ungil"
    assert title("interrupt", *cells) == said


def test_ctrl_c_that_ungil_loses_is_said_to_be_lost() -> None:
    cells = [interrupted("3.13", "stock", 2.5), interrupted("3.13", "interactive", None)]
    said = "Ctrl-C never arrived in 2009; it takes 2.5 s on 3.13 and never arrives under ungil"
    assert title("interrupt", *cells) == said


def counted(variant: str, wall_s: float) -> Result:
    return result("countdown", "3.14", variant, wall_s=wall_s)


def test_threads_that_cost_more_under_ungil_are_said_to_cost_more() -> None:
    cells = [counted("in sequence", 2.0), counted("two threads", 2.0), counted("batch", 3.0)]
    assert title("countdown", *cells) == (
        "Two threads that count took 85 % longer than none in 2009, no longer on 3.14 and"
        " 50 % longer under ungil"
    )


def stood(variant: str, still_s: float) -> Result:
    figures = ("tick_s", "computing_still_s", "sleeping_still_s", "to_interrupt_s")
    return result("tick", "3.14", variant, **dict.fromkeys(figures, still_s))


def test_an_operation_that_ungil_cannot_shorten_is_said_to_be_none_that_it_can() -> None:
    named = result("tick", "3.14", "ungil trace", line="f (/a/b.py:3)", hold_s=2.0)
    said = title("tick", stood("stock", 2.0), stood("interactive", 2.01), named)
    assert said.endswith("; ungil cannot shorten it, but names the line: f (b.py:3)")
    shorter = title("tick", stood("stock", 2.0), stood("interactive", 0.5))
    assert shorter.endswith("; under ungil 500 ms")


@pytest.mark.parametrize("name", NAMES)
def test_the_title_has_the_figures_of_the_summary(name: str) -> None:
    one = found(name, RUN.of(name))
    assert [mark.kind for row in one.summary for mark in row.marks][-1] == "ungil"
    for row in one.summary:
        for mark in row.marks:
            # How much longer is what the countdown says; never is told of the oldest interpreter.
            figure = longer(mark.value) if name == "countdown" else one.unit(mark.value)
            unchanged = name == "tick" and mark.kind == "ungil"
            assert ("cannot shorten it" if unchanged else figure) in one.title, row.label


@pytest.mark.parametrize("name", NAMES)
def test_ungil_is_in_every_chart_where_it_has_an_answer(name: str) -> None:
    for chart in found(name, RUN.of(name)).charts:
        assert "kind='ungil'" in repr(chart), chart.title


def test_an_interpreter_without_a_gil_is_a_column_like_any_other() -> None:
    cells = [
        result("matmul", python, f"{workers} threads", wall_s=wall_s)
        for python, walls_s in (("3.14", (1.0, 1.0)), ("3.14t", (1.0, 0.55)))
        for workers, wall_s in zip((1, 2), walls_s, strict=True)
    ]
    curves, ways = found("matmul", results(*cells)).charts
    assert isinstance(curves, Curves)
    assert isinstance(ways, Ranked)
    assert [panel.title for panel in curves.panels] == ["Python 3.14", "Python 3.14t"]
    assert "55 %" in title("matmul", *cells)
    assert len(ways.panels) == 2


def test_an_interpreter_that_ungil_has_nothing_to_say_of_does_not_hide_one_that_it_has() -> None:
    cells = [
        interrupted("3.14", "stock", 0.01),
        interrupted("3.14", "interactive", 0.0002),
        interrupted("3.14t", "stock", 0.0001),
    ]
    said = "Ctrl-C never arrived in 2009; it takes 10 ms on 3.14 and 0.2 ms under ungil"
    assert title("interrupt", *cells) == said
    [chart] = found("interrupt", results(*cells)).charts
    assert isinstance(chart, Ranked)
    assert [row.label for row in chart.panels[0].rows] == ["Beazley 2009", "3.14", "3.14t"]


def test_a_value_has_the_unit_that_fits() -> None:
    values = (0.000176, 0.0103, 0.9994, 0.9996, 1.164, 100.3, 0.0, NEVER)
    assert [SECONDS(it) for it in values] == [
        *("0.176 ms", "10.3 ms", "999 ms", "1 s", "1.16 s", "100 s", "0", "never"),
    ]
    assert [COUNT(it) for it in (17, 8682, 1_000_020, 4_469_850)] == [
        *("17", "8,682", "1 million", "4.47 million"),
    ]
    assert PERCENT(57.6) == "58 %"


def test_what_differs_less_than_two_runs_do_is_called_the_same() -> None:
    assert [longer(it) for it in (0.98, 1.02, 1.28, 0.5)] == [
        *("no longer", "no longer", "28 % longer", "50 % less"),
    ]
    assert times_as(200.0, 50.0) == "4.0 times less"
    assert times_as(1.0, 1.5) == "1.5 times more"
    assert times_as(1.0, 1.01) == "about the same"


def test_parts_that_are_not_there_are_left_out() -> None:
    assert joined(["a", "", "b", "c"]) == "a, b and c"
    assert joined([]) == "nothing was measured"
