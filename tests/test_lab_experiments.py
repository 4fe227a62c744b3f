"""The experiments of the lab: what was published, what they plan, how they show results."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from lab import chosen, result, results

from ungil.errors import UsageError
from ungil.lab import system_calls
from ungil.lab.experiment import Experiment, Missing, Plan
from ungil.lab.experiments import NAMES, battle, countdown, fairness, load
from ungil.lab.figures import jain, number, times
from ungil.lab.findings import found
from ungil.lab.recording import recording
from ungil.lab.results import Result
from ungil.lab.text import notes
from ungil.lab.workload import words_of

EXPERIMENTS = load(())
EACH = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)


def test_each_experiment_has_the_name_by_which_it_is_asked_for() -> None:
    assert [experiment.name for experiment in EXPERIMENTS] == list(NAMES)


@EACH
def test_an_experiment_says_what_it_asks_where_it_is_from_and_how_to_read_it(
    experiment: Experiment,
) -> None:
    assert len(re.findall(r"[.?](?: |$)", experiment.question)) == 2
    assert experiment.reading.endswith(".")
    assert 2002 <= experiment.source.year <= 2020
    ungil, lab, *words = experiment.reproduce.split()
    assert (ungil, lab) == ("ungil", "lab")
    assert load(words) == [experiment]


@EACH
@pytest.mark.parametrize("quick", [True, False])
def test_no_two_cells_of_a_plan_are_the_same(experiment: Experiment, quick: bool) -> None:
    interpreters = [chosen(), replace(chosen(), version="2.7.18", name="2.7")]
    cells = experiment.plan(Plan(interpreters, quick))
    keys = Counter(
        Result(one.experiment, one.python, one.variant, one.round, one.settings, "missing", {}, "",
               0.0, 0.0, "").key
        for one in cells
    )  # fmt: skip
    assert set(keys.values()) == {1}
    assert {one.experiment for one in cells} == {experiment.name}
    assert all(one.seconds > 0 for one in cells)


@EACH
def test_a_quick_plan_is_small(experiment: Experiment) -> None:
    cells = experiment.plan(Plan([chosen()], quick=True))
    full = experiment.plan(Plan([chosen()], quick=False))
    assert sum(one.seconds for one in cells) < sum(one.seconds for one in full)


@EACH
def test_without_a_measurement_there_are_dashes_and_no_figures(experiment: Experiment) -> None:
    cells = [
        replace(result(one.experiment, one.python, one.variant), status="missing", why="no luck",
                settings=one.settings, round=one.round)
        for one in experiment.plan(Plan([chosen()], quick=True))
    ]  # fmt: skip
    empty = results(*cells)
    for table in experiment.tables(empty):
        for row in table.rows:
            assert len(row.cells) == len(table.columns)
            if row.kind != "published":
                assert not [cell for cell in row.cells[1:] if re.search(r"\d", cell)]
    none = found(experiment.name, empty)
    assert {mark.kind for row in none.summary for mark in row.marks} <= {"published"}
    assert none.title
    assert "no luck" in " ".join(notes(empty))


def test_the_countdown_is_shown_beside_what_was_published() -> None:
    def counted(variant: str, wall_s: float) -> Result:
        switches = {"voluntary_switches": 10, "involuntary_switches": 20}
        counted = result("countdown", "3.11", variant, wall_s=wall_s, **switches)
        return replace(counted, settings={"n": 3_000})

    shown = results(counted("in sequence", 2.0), counted("two threads", 3.0), counted("batch", 2.0))
    table = countdown.EXPERIMENT.tables(shown)[0]
    assert table.title == "now n = 3,000"
    assert [row.cells for row in table.rows] == [
        ("Beazley 2009, n = 100,000,000", "24.6 s", "1.85x", "1.54x", "", "", ""),
        ("3.11", "2.00 s", "1.50x", "-", "-", "-", "1.00x"),
    ]
    assert countdown.EXPERIMENT.tables(shown)[1].rows[-1].cells == ("3.11", "-", "-", "15", "10")


def looper(tid: int, max_gap_ms: float, silent_ms: float, turns: int) -> dict[str, float]:
    return {
        "tid": tid,
        "mean_gap_ms": 0.001,
        "max_gap_ms": max_gap_ms,
        "silent_ms": silent_ms,
        "at_turn": 7,
        "turns": turns,
    }


def test_a_gap_in_which_nobody_ran_is_called_the_kernels() -> None:
    threads = [[looper(tid, 10.0, 0.0, 50) for tid in range(n)] for n in range(1, 8)]
    threads[1] = [looper(0, 20.0, 19.0, 100), looper(1, 15.0, 0.0, 300)]
    shown = results(result("fairness", "3.11", "stock", threads=threads))
    overview, his, _ = fairness.EXPERIMENT.tables(shown)
    then, row = overview.rows
    assert then.cells == ("Peters 2002", "15.1", "1.06", "1.66", "", "1.000", "1.000", "1.000")
    assert row.cells[:2] == ("3.11 stock", "20.0 kernel")
    assert row.cells[4] == "1 of 27"
    assert row.cells[5] == "0.800"
    assert len(his.rows) == 7
    assert his.rows[0].cells == ("stock", "0", "0.00100", "10.0", "7 of 50", "GIL")


def test_holds_of_one_thread_without_another_between_them_are_one() -> None:
    holds = [(1, 0, 4), (2, 9, 12), (1, 5, 8), (2, 13, 20), (1, 21, 22)]
    assert battle.merged(holds) == [(1, 0, 8), (2, 9, 20), (1, 21, 22)]


def test_a_slot_of_the_picture_belongs_to_whoever_held_for_most_of_it() -> None:
    ms = battle.SLOT_NS
    picture = battle.slots([(1, 0, ms + ms // 4), (2, ms + ms // 4, 3 * ms), (1, 4 * ms, 5 * ms)])
    assert picture[:6] == "122.1."
    assert len(picture) == battle.SLOTS


def test_a_battle_is_recorded_and_drawn() -> None:
    [cell, *_] = battle.EXPERIMENT.plan(Plan([chosen()], quick=True))
    measured = cell.measure()
    assert measured["lost_events"] == 0
    assert measured["handoffs"] > 0
    assert set(measured["slots"]) <= {"1", "2", "."}
    assert {"1", "2"} & set(measured["slots"])
    for who, begin_ms, end_ms in measured["spans"]:
        assert who in (1, 2)
        assert 0 <= begin_ms <= end_ms <= battle.SLOTS


def test_a_free_threaded_interpreter_has_no_gil_to_record() -> None:
    with (
        pytest.raises(Missing, match="has no GIL"),
        recording(replace(chosen(), free_threaded=True)),
    ):
        raise AssertionError("it was recorded")


STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 98.10    0.004100           4      1000       120 futex
  1.90    0.000080           1        62           read
------ ----------- ----------- --------- --------- ----------------
100.00    0.004180           3      1062       120 total
"""


def test_the_table_of_strace_is_read_with_and_without_errors() -> None:
    assert system_calls.parse(STRACE) == {"futex": 1000, "read": 62}


def test_system_calls_are_counted() -> None:
    words = words_of(chosen(), "countdown", 1000, "threads")
    said, calls = system_calls.count(words)
    assert said["wall_s"] > 0
    assert calls["futex"] > 0
    assert "total" not in calls


def test_without_strace_there_is_a_sentence_on_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Missing, match="strace is not installed: apt install strace"):
        system_calls.count([chosen().path, "-c", "pass"])


def test_an_experiment_that_there_is_not_is_a_mistake_and_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="there is no experiment 'luck'; there are fairness, "):
        load(["luck"])
    assert [one.name for one in load(["countdown", "fairness", "countdown"])] == [
        "fairness",
        "countdown",
    ]


def test_the_index_of_fairness_is_1_for_equal_shares_and_1_over_n_for_one_that_has_all() -> None:
    assert jain([5, 5, 5, 5]) == pytest.approx(1.0)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([]) == 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.1234, "0.12"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (12345.6, "12,346"),
    ],
)
def test_figures_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
    assert times(None) == "-"


@EACH
@pytest.mark.parametrize("quick", [True, False])
def test_what_is_said_of_the_tables_names_only_variants_that_run(
    experiment: Experiment, quick: bool
) -> None:
    plan = experiment.plan(Plan([chosen()], quick))
    there = results(*(result(cell.experiment, cell.python, cell.variant) for cell in plan))
    said = experiment.explained(there)
    variants = {one.variant for one in there}
    for policy in ("interactive", "fair", "batch", "priority"):
        if re.search(rf"\b[Uu]nder {policy}\b", said):
            assert policy in variants, said


def test_a_reason_that_many_variants_share_is_told_once() -> None:
    cells = [
        replace(result("one", python, f"{n}"), status="missing", why="it is old")
        for python in ("2.7", "3.6")
        for n in range(9)
    ]
    failed = replace(result("one", "3.11", "fair"), status="failed", why="it died")
    assert notes(results(*cells, failed)) == [
        "not measured: 2.7; 3.6: it is old",
        "FAILED: 3.11 fair: it died",
    ]


def test_what_was_measured_while_others_were_at_work_is_told() -> None:
    busy = replace(result("one", "3.11", "stock"), others=0.5)
    assert notes(results(busy)) == [
        "1 of 1 cells were measured while others took more than 10% of the machine: compare them"
        " with care"
    ]
