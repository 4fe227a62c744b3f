"""The rows of a comparison on screens of any width."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from test_diff_answer import compared

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.matching import Threads
from ungil.comparison.metrics import METRICS
from ungil.comparison.noise import judge
from ungil.comparison.rows import draw_rows


def changed(name: str) -> Row:
    """A row of which every number has changed."""
    metrics = {it.key: judge(it, [2.888] * 4, [43.334] * 4, None) for it in METRICS}
    return Row(Threads("app", 0, name), name, (12.0, 12.0), "both", metrics)


def drawn(comparison: Comparison, width: int) -> str:
    """The rows on a screen of this width."""
    file = StringIO()
    console = Console(file=file, width=width, highlight=False)
    for part in draw_rows(comparison, console):
        console.print(part)
    return file.getvalue()


COMPARISON = compared([changed("ThreadPoolExecutor-*_*"), changed("heartbeat")], [])


@pytest.mark.parametrize("width", [32, 40, 50, 60, 70, 80, 90, 100, 119, 120, 160, 240])
def test_no_screen_is_too_narrow_for_a_number(width: int) -> None:
    text = drawn(COMPARISON, width)
    assert max(map(len, text.splitlines())) <= width
    words = text.replace(",", " ").split()
    for number in ("28.9s", "433s", "2.89/s", "43.3/s"):
        assert words.count(number) >= 2, number
    cut = [word for word in words if "…" in word]
    assert all(word.startswith(("Thre", "hear")) for word in cut), cut
    assert " ".join(text.split()).count("15 times more") == 2


def test_what_else_changed_is_no_column_where_it_would_be_a_narrow_one() -> None:
    assert len(drawn(COMPARISON, 80).splitlines()) < 25
    assert "What else changed" in drawn(COMPARISON, 80)
    assert "What else changed" not in drawn(COMPARISON, 120)
    still = compared([], [])
    assert "What else changed" not in drawn(still, 80)
