"""Names in the report: short enough, told apart, and nothing but text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import convoy, drawn, thread, widest, with_threads
from rich.cells import cell_len

from ungil.report.names import Names, shortened


def strange() -> dict[str, Any]:
    """Threads whose names are long, alike, wide, or meant for the terminal."""
    report = with_threads(8)
    names = [
        "ThreadPoolExecutor-0_0",
        "ThreadPoolExecutor-0_1",
        "ThreadPoolExecutor-1_0",
        "worker-of-tenant-alpha-in-the-queue",
        "worker-of-tenant-gamma-in-the-queue",
        "日本語の名前を持つスレッド・一番",
        "👩‍🚀 astronaut 🚀🚀🚀🚀🚀🚀🚀🚀🚀",
        "\x1b]0;title\x07\x9b2J\u202e" * 3,
    ]
    for process in report["processes"][:1]:
        gil = process["gils"][0]
        for one, name in zip(gil["threads"], names, strict=True):
            one["name"] = name
        gil["long_holds"] = [
            {
                "tid": one["tid"],
                "name": one["name"],
                "duration_ms": 50.0,
                "waited_s": 0.1,
                "waiters_max": 1,
                "stack": [f"{'名' * 50} (/srv/{'長' * 40}/{'x' * 90}.py:42)"],
            }
            for one in gil["threads"]
        ]
    report["findings"][0]["text"] = f"thread {names[-1]} waited for {'很' * 90}"
    return report


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for report in (convoy(), with_threads(1), with_threads(500), strange()):
        for height in (None, 24, 80):
            assert widest(drawn(report, width, height)) <= width


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_threads_whose_names_are_cut_are_told_apart(width: int) -> None:
    lines = drawn(strange(), width).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("thread "))
    rows = lines[start + 1 : start + 9]
    # No column before the numbers has two spaces in it.
    names = {row.split("  ")[0] for row in rows}
    assert len(names) == 8, names
    start = next(index for index, line in enumerate(lines) if line.startswith("for whom"))
    assert len({line[:16] for line in lines[start + 1 : start + 8]}) == 7
    heads = lines[start][16:].split()
    assert len(set(heads)) == len(heads)


def test_threads_that_share_a_name_are_told_apart() -> None:
    report = convoy()
    for one in report["processes"][0]["gils"][0]["threads"]:
        one["name"] = "pool" if one["tid"] > 4243 else ""
    text = drawn(report)
    assert "pool 4244" in text
    assert "pool 4245" in text
    assert "thread 4243" in text


def test_parties_that_are_no_listed_thread_have_a_name_too() -> None:
    report = convoy()
    report["processes"][0]["gils"][0]["blame"] = [
        {"victim": 4243, "culprit": 99, "culprit_name": "short-lived", "waited_s": 3.0},
        {"victim": "others", "culprit": "unknown", "culprit_name": None, "waited_s": 2.0},
        {"victim": 98, "culprit": None, "waited_s": 1.0},
    ]
    text = drawn(report)
    for name in ("short-lived", "others ", "unknown", "thread 98 ", "nobody"):
        assert name in text


def test_a_traced_program_cannot_write_to_the_terminal_through_names() -> None:
    report = convoy()
    report["processes"][0]["argv"] = ["\x1b]0;title\x07", "[red]"]
    report["processes"][0]["gils"][0]["threads"][1]["name"] = "\x1b[2J\n[bold]x[/bold]"
    report["findings"][0]["text"] = "\x1b[31mred\udcff"
    text = drawn(report)
    assert "\x1b" not in text
    assert "[red]" in text
    assert r"\x1b[31mred\udcff" in text


@pytest.mark.parametrize(
    ("name", "cells", "text"),
    [
        ("io", 9, "io"),
        ("ThreadPoolExecutor-0_3", 14, "ThreadPo…r-0_3"),
        ("ThreadPoolExecutor-0_3", 16, "ThreadPoo…or-0_3"),
        ("ThreadPoolExecutor-0_3", 22, "ThreadPoolExecutor-0_3"),
        ("日本語の名前です", 9, "日本語…す"),
        ("x" * 9, 1, "…"),
    ],
)
def test_a_name_is_cut_in_the_middle(name: str, cells: int, text: str) -> None:
    assert shortened(name, cells) == text


def names_of(*names: str) -> tuple[Names, list[str]]:
    gil = convoy()["processes"][0]["gils"][0]
    gil["threads"] = [thread(1_000_000 + index, name, 0, 0) for index, name in enumerate(names)]
    known = Names(gil)
    return known, [known.of_thread(one) for one in gil["threads"]]


def test_the_end_gets_the_cells_that_tell_names_apart() -> None:
    known, called = names_of("pool-of-a-long-name-0011", "pool-of-a-long-name-0021")
    assert list(known.fitted(called, 9).values()) == ["pool-…011", "pool-…021"]
    known, called = names_of("alpha-worker-thread", "gamma-worker-thread")
    assert list(known.fitted(called, 9).values()) == ["alpha…ead", "gamma…ead"]


def test_names_get_wider_where_that_tells_them_apart() -> None:
    known, called = names_of("worker-of-alpha-in-the-queue", "worker-of-gamma-in-the-queue")
    assert list(known.fitted(called, 10, 20).values()) == ["worker-of-a…", "worker-of-g…"]


def test_names_that_no_cut_tells_apart_end_with_their_tid() -> None:
    known, called = names_of("worker-of-alpha-in-the-queue", "worker-of-gamma-in-the-queue", "io")
    assert list(known.fitted(called, 10).values()) == ["wo…1000000", "wo…1000001", "io"]


def test_a_thread_that_has_the_name_of_another_with_its_tid_is_told_apart() -> None:
    _, called = names_of("pool", "pool", "pool 1000000")
    assert called == ["pool 1000000", "pool 1000001", "pool 1000000 1000002"]


@given(
    st.lists(st.text("ab-0日é👍\u0301\x1b", max_size=30), min_size=1, max_size=8),
    st.integers(9, 40),
)
def test_any_names_fit_and_are_told_apart(texts: list[str], cells: int) -> None:
    known, called = names_of(*texts)
    cut = known.fitted(called, cells)
    assert all(cell_len(text) <= cells for text in cut.values())
    assert len(set(cut.values())) == len(texts)
    assert all(cut[name] == name for name in called if cell_len(name) <= cells)
