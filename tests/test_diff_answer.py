"""The first line of a comparison: what changed in all, and what did where that hides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import COST, ComparedFinding, Status, Subject
from ungil.comparison.little import Little, as_neither, by_call
from ungil.comparison.matching import ALL, Threads
from ungil.comparison.metrics import FOR_LOCKS, METRICS, WAITED
from ungil.comparison.noise import judge
from ungil.comparison.words import answer, matter


def row(which: Threads, name: str, before: float, after: float) -> Row:
    """A row whose runs of one side waited for equally long."""
    waited = judge(WAITED, [before] * 4, [after] * 4, None)
    for_locks = judge(FOR_LOCKS, [0.0] * 4, [0.0] * 4, None)
    metrics = {it.metric.key: it for it in (waited, for_locks)}
    return Row(which, name, (1.0, 1.0), "both", metrics)


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


def working(waited: tuple[float, float], calls: tuple[float, float]) -> Row:
    """All threads of runs that waited for so long, in so many blocking calls a second."""
    sides = {"waited": waited, "waited_for_locks": (0.0, 0.0), "blocking_calls": calls}
    metrics = {
        it.key: judge(it, [sides[it.key][0]] * 4, [sides[it.key][1]] * 4, None)
        for it in METRICS
        if it.key in sides
    }
    return Row(ALL, "all threads", (1.0, 1.0), "both", by_call(metrics))


def of_all(
    total: Row,
    findings: list[ComparedFinding],
    little: Little | None,
    groups: Sequence[Row] = (),
) -> Comparison:
    """A comparison of which nothing else is known."""
    return Comparison([], [], total, [], [], list(groups), findings, [], little)


def test_more_waits_of_as_many_more_blocking_calls_are_nothing_worse() -> None:
    served = of_all(working((0.2, 0.6), (1_000.0, 3_200.0)), [], None)
    assert answer(served) == (
        "threads waited 2.0 s in 10 s before, 6.0 s after: 3.0 times more, but no longer for each "
        "blocking call; they made 3.2 times more blocking calls, and waited 200µs for each before, "
        "188µs after"
    )
    assert (served.total.waited.verdict, served.is_worse) == ("more", False)


def test_longer_waits_of_each_of_more_blocking_calls_are_worse() -> None:
    slower = of_all(working((0.2, 2.0), (1_000.0, 3_200.0)), [], None)
    assert answer(slower) == (
        "threads waited 2.0 s in 10 s before, 20 s after: 10 times more (more than the noise); "
        "they made 3.2 times more blocking calls, and waited 200µs for each before, 625µs after"
    )
    assert slower.is_worse
    assert of_all(working((0.2, 0.6), (1_000.0, 1_500.0)), [], None).is_worse


def test_as_long_waits_of_more_blocking_calls_are_told_for_each_call() -> None:
    total, pool = (working((2.5, 2.5), (1_000.0, 3_200.0)), working((0.5, 1.3), (300.0, 1_500.0)))
    answered = of_all(total, [], None, [replace(pool, name="pool-*")])
    said = (
        "threads waited 25 s in 10 s before, 25 s after: no change beyond the noise; they made 3.2 "
        "times more blocking calls, and waited 2.50ms for each before, 781µs after"
    )
    # That these made more calls, and waited for those, is nothing by itself.
    assert answer(answered) == said
    heart = row(Threads("app", 0, "heart"), "heart", 0.6, 0.06)
    assert answer(replace(answered, groups=[heart])) == f"{said}; heart waited 10 times less"


def test_waits_that_are_next_to_nothing_are_told_so() -> None:
    total = working((0.04, 0.45), (650.0, 2_250.0))
    total.metrics["waited"] = as_neither(total.waited)
    calm = of_all(total, [], Little(0.0029, 0.0103))
    assert answer(calm) == (
        "threads hardly waited for the GIL: 0.3 % of their time before, 1 % after; they made "
        "3.5 times more blocking calls after"
    )
    assert (calm.total.waited.verdict, calm.is_worse) == ("more", False)
    none = of_all(working((0.0, 0.0), (1.0, 1.0)), [], Little(0.0, 0.0))
    assert answer(none) == "threads did not wait for the GIL, before or after"


def held(where: str | None, before: float, after: float, status: Status) -> ComparedFinding:
    """A finding about native code of that function."""
    cost = judge(COST, [before] * 4, [after] * 4, None)
    subject = Subject("native-hold", None, 0, "io-*", where)
    return ComparedFinding(subject, (4, 4), "", cost, status)


def test_a_kind_of_finding_is_not_gone_where_another_one_of_it_is_new() -> None:
    gone, new = held("f (a.py)", 0.7, 0.0, "gone"), held("g (a.py)", 0.0, 0.69, "new")
    for findings in ([gone, new], [new, gone]):
        both = compared([], findings)
        assert answer(both).endswith(
            "but the finding native-hold is gone in f (a.py) and new in g (a.py)"
        )
        assert both.is_worse
    assert answer(compared([], [gone])).endswith(", but the finding native-hold is gone")


def test_the_finding_for_which_a_comparison_is_worse_is_told_where_waits_in_all_are_not() -> None:
    new = held("g (a.py)", 0.0, 0.1, "new")
    better = of_all(working((2.0, 0.2), (100.0, 100.0)), [new], None)
    assert better.is_worse
    assert answer(better) == (
        "threads waited 20 s in 10 s before, 2.0 s after: 10 times less (more than the noise), "
        "but the finding native-hold is new"
    )


def test_waits_for_locks_that_changed_are_told_beside_those_for_the_gil() -> None:
    total = working((0.1, 0.1), (100.0, 100.0))
    total.metrics[FOR_LOCKS.key] = judge(FOR_LOCKS, [0.2] * 4, [0.001] * 4, None)
    said = answer(of_all(total, [], None))
    assert said.endswith("; threads waited 2.0 s for locks in 10 s before, 10 ms after")
