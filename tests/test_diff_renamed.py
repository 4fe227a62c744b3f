"""Findings of a program whose file has another name on the other side."""

from __future__ import annotations

from dataclasses import replace

from ungil.comparison.findings import Subject, renamed

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
