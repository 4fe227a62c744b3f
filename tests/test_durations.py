"""Durations as people write them."""

from __future__ import annotations

import pytest

from ungil.durations import parse_duration
from ungil.errors import UsageError


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("20ms", 20_000_000),
        ("1s", 1_000_000_000),
        ("1.5 s", 1_500_000_000),
        (".5ms", 500_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("7ns", 7),
        ("1min", 60_000_000_000),
        ("2h", 7_200_000_000_000),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, nanoseconds: int) -> None:
    assert parse_duration(text, "--last") == nanoseconds


@pytest.mark.parametrize("text", ["", "20", "ms", "-1s", "1e3ms", "1 day", "20 MS", "1,5s"])
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_duration(text, "--last")
    assert str(refused.value).startswith(f"--last: {text!r} is not a duration; write a number")


def test_no_time_is_no_duration() -> None:
    with pytest.raises(UsageError, match="--last: '0s' is not above zero"):
        parse_duration("0s", "--last")
