"""Findings of a program whose file, threads or command have another name on the other side."""

from __future__ import annotations

from dataclasses import replace

from ungil.comparison.findings import Found, Subject, moved, renamed

WAS = Subject("native-hold", "python app.py", 0, "Thread-* (handler)", "parse (app.py)")
IS_NOW = replace(WAS, function="parse (app2.py)")


def test_the_same_function_in_a_file_with_another_name_is_the_same() -> None:
    convoy = replace(WAS, kind="convoy")
    assert renamed([WAS, convoy], [convoy, IS_NOW]) == [(IS_NOW, WAS)]


def test_another_function_thread_or_kind_is_not() -> None:
    for other in (
        replace(IS_NOW, function="read (app.py)"),
        replace(IS_NOW, thread="main"),
        replace(IS_NOW, kind="hog"),
        replace(IS_NOW, function=None),
    ):
        assert renamed([WAS], [other]) == []
    assert renamed([replace(WAS, function=None)], [IS_NOW]) == []


def test_one_that_two_others_may_be_is_none_of_them() -> None:
    rival = replace(WAS, function="parse (app3.py)")
    assert renamed([WAS], [IS_NOW, rival]) == []
    assert renamed([WAS, rival], [IS_NOW]) == []
    assert renamed([WAS], [WAS, IS_NOW]) == []


def found(cost: float, *culprits: str) -> Found:
    """What three runs of a side have of a finding."""
    return Found([cost] * 3, frozenset(culprits))


WAITED = Subject("convoy", "uvicorn app:app", 0, "MainThread", None)
MOVED = replace(WAITED, command="python -c spawn", thread="Thread-* (serve)")


def test_the_same_waits_behind_the_same_threads_are_the_same_for_other_victims() -> None:
    pool = found(1.2, "AnyIO worker thread")
    for now in (MOVED, replace(WAITED, thread="io-*"), replace(WAITED, command="python -c spawn")):
        assert moved({WAITED: pool}, {now: found(1.3, "AnyIO worker thread", "x")}) == [
            (now, WAITED)
        ]
    assert moved({WAITED: pool}, {WAITED: pool}) == []


def test_a_thread_without_a_name_of_its_own_has_two_names() -> None:
    after = {MOVED: found(1.0, "Thread-* (compute)")}
    assert moved({WAITED: found(1.0, "Thread-*")}, after) == [(MOVED, WAITED)]
    assert moved({WAITED: found(1.0, "Thread-* (other)")}, after) == []


def test_waits_behind_the_same_threads_of_a_command_are_the_same_whatever_they_cost() -> None:
    now = replace(WAITED, thread="packer_*")
    before, after = found(2.7, "packer_*"), found(0.6, "packer_*")
    assert moved({WAITED: before}, {now: after}) == [(now, WAITED)]
    spawned = replace(now, command="python -c spawn")
    assert moved({WAITED: before}, {spawned: after}) == []


def test_waits_behind_others_of_another_size_or_kind_are_not_the_same() -> None:
    before = {WAITED: found(1.0, "pool")}
    assert moved(before, {MOVED: found(1.0, "other")}) == []
    assert moved(before, {MOVED: found(1.6, "pool")}) == []
    assert moved(before, {MOVED: found(0.6, "pool")}) == []
    assert moved(before, {replace(MOVED, kind="hog"): found(1.0, "pool")}) == []
    assert moved(before, {replace(MOVED, function="f (a.py)"): found(1.0, "pool")}) == []
    rival = replace(MOVED, thread="rival")
    assert moved(before, {MOVED: found(1.0, "pool"), rival: found(1.0, "pool")}) == []
