"""Numbers as the report writes them."""

from __future__ import annotations

import pytest

from ungil.formatting import digits, duration, plural, rate, share, tally
from ungil.formatting import printable as plain


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0"),
        (float("nan"), ""),
        (4.2e-7, "420ns"),
        (4.2e-6, "4.20µs"),
        (9.996e-6, "10.0µs"),
        (93_450e-9, "93.5µs"),
        (93_250e-9, "93.2µs"),
        (93_750e-9, "93.8µs"),
        (9.996e-4, "1.00ms"),
        (5.1e-3, "5.10ms"),
        (0.99951, "1.00s"),
        (83.04, "83.0s"),
        (12345.6, "12,346s"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_other_numbers_are_short_too() -> None:
    assert [share(part, 10) for part in (0, 0.01, 3.7, 10)] == ["0%", "<1%", "37%", "100%"]
    assert share(1, 0) == "0%"
    assert [tally(n) for n in (0, 9999, 12345, 999_499, 999_500, 4_560_000_000)] == [
        "0", "9,999", "12.3k", "999k", "1.00M", "4.56G",
    ]  # fmt: skip
    assert (rate(10, 4), rate(10, 0)) == ("2.50", "0")
    assert (plural(1, "thread"), plural(2000, "thread")) == ("1 thread", "2,000 threads")
    assert plural(2, "process") == "2 processes"
    assert (digits(9.994), digits(9.995), digits(99.95)) == ("9.99", "10.0", "100")
    assert plain("a\tb\x00é") == r"a\tb\x00é"
