"""The first line of a comparison: what changed in all, and what did where that hides it."""

from __future__ import annotations

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import COST, ComparedFinding, Subject
from ungil.comparison.matching import ALL, Threads
from ungil.comparison.metrics import WAITED
from ungil.comparison.noise import judge
from ungil.comparison.words import answer, matter


def row(which: Threads, name: str, before: float, after: float) -> Row:
    """A row whose runs of one side waited for equally long."""
    waited = judge(WAITED, [before] * 4, [after] * 4, None)
    return Row(which, name, (1.0, 1.0), "both", {WAITED.key: waited})


def convoy(before: float, after: float) -> ComparedFinding:
    """A finding of all runs of both sides."""
    cost = judge(COST, [before] * 4, [after] * 4, None)
    return ComparedFinding(Subject("convoy", None, 0, "io", None), (4, 4), "", cost, "both")


def compared(groups: list[Row], findings: list[ComparedFinding]) -> Comparison:
    """Two sides that waited for as long in all."""
    return Comparison([], [], row(ALL, "all threads", 2.5, 2.5), [], [], groups, findings, [])


def test_who_waits_less_is_told_where_others_wait_more() -> None:
    pool = row(Threads("app", 0, "pool-*"), "pool-*", 1.9, 2.44)
    heart = row(Threads("app", 0, "heart\x1b[1m"), "heart\x1b[1m", 0.6, 0.06)
    said = answer(compared([pool, heart], []))
    start = "threads waited 25 s in 10 s before, 25 s after: no change beyond the noise"
    assert said == f"{start}, but pool-* waited 28 % more"
    said = answer(compared([heart], []))
    assert said == f"{start}, but heart\\x1b[1m waited 10 times less"
    assert answer(compared([row(Threads("app", 0, "a"), "a", 1.0, 1.0)], [])) == start


def test_a_finding_that_costs_less_is_told_where_no_group_of_threads_shows_it() -> None:
    said = answer(compared([], [convoy(1.5, 0.05)]))
    assert said.endswith("no change beyond the noise, but the finding convoy costs 30 times less")


def test_a_finding_that_few_runs_of_a_side_have_is_not_shown() -> None:
    shown = convoy(1.5, 0.05)
    assert matter([convoy(0.0, 0.0), shown]) == [shown]
