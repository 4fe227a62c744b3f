"""A part of a trace: which one `--from`, `--to` and `--last` name, and what its report says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ungil.cli.report.part import SECOND_NS
from ungil.cli.report.part import Extent as Span
from ungil.errors import UsageError

Run = Callable[..., subprocess.CompletedProcess[str]]

# Two threads that want the GIL all the time, for as many turns as it takes to be a while.
TWO_THREADS = """
import threading
def work():
    for _ in range(60):
        sum(range(100_000))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000).astimezone()
"""When the trace of `span` began."""


def span(seconds: float = 600, start: datetime | None = NOON) -> Span:
    unix_ns = None if start is None else round(start.timestamp() * 1_000) * 1_000_000
    return Span(7 * SECOND_NS, round((7 + seconds) * SECOND_NS), unix_ns)


def seconds_of(part: tuple[int, int]) -> tuple[float, float]:
    return ((part[0] / SECOND_NS) - 7, (part[1] / SECOND_NS) - 7)


@pytest.mark.parametrize(
    ("begin", "end", "last", "expected"),
    [
        ("12.5", None, None, (12.5, 600)),
        (None, "5m", None, (0, 300)),
        ("30s", "1m", None, (30, 60)),
        (None, "1h", None, (0, 600)),
        (None, None, "30s", (570, 600)),
        (None, None, "2h", (0, 600)),
        ("12:01:00.25", "12:02:00.25", None, (60, 120)),
        ("12:00", None, None, (0, 600)),
        ("12:05", None, None, (299.75, 600)),
        ("2026-01-31T12:05:00.250", None, None, (300, 600)),
        ("2026-01-31 12:05:00.250", "301", None, (300, 301)),
    ],
)
def test_a_part_is_named_by_seconds_by_a_time_or_by_its_length(
    begin: str | None, end: str | None, last: str | None, expected: tuple[float, float]
) -> None:
    assert seconds_of(span().part(begin, end, last)) == pytest.approx(expected, abs=1e-6)


def test_a_time_after_midnight_is_one_of_the_next_day() -> None:
    late = span(3600, NOON.replace(hour=23, minute=30))
    assert seconds_of(late.part("23:45:00.25", "00:15:00.25", None)) == pytest.approx((900, 2700))


@pytest.mark.parametrize(
    ("begin", "end", "last", "sentence"),
    [
        (
            "soon",
            None,
            None,
            "--from 'soon' is not a point in time: give seconds from the start (12.5), ",
        ),
        (None, "-3", None, "--to '-3' is not a point in time: "),
        ("nan", None, None, "--from 'nan' is not a point in time: "),
        ("25:00", None, None, "--from '25:00' is no time of day"),
        (
            "700",
            None,
            None,
            "--from '700' is after the end of the trace, which is 600 s long, from 2026-01-31",
        ),
        ("11:00:00", None, None, "--from '11:00:00' is not in the trace, which is 600 s long"),
        ("2025-01-31", None, None, "--from '2025-01-31' is not in the trace, which"),
        ("30", "20", None, "--to '20' is not after --from '30'"),
        (None, "0", None, "--to '0' is not after the start of the trace"),
        (None, None, "0s", "--last '0s' is not a duration such as 30s or 5m"),
        (None, None, "12:00", "--last '12:00' is not a duration such as 30s or 5m"),
    ],
)
def test_what_names_no_part_is_one_sentence(
    begin: str | None, end: str | None, last: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        span().part(begin, end, last)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_trace_that_does_not_know_the_time_asks_for_seconds() -> None:
    with pytest.raises(UsageError, match="lacks the time of day"):
        span(start=None).part("12:03:41", None, None)
    assert seconds_of(span(start=None).part("3", None, None)) == pytest.approx((3, 600))


@given(st.floats(0, 86_000), st.floats(1, 86_000))
def test_any_moment_of_a_day_long_trace_is_found_by_its_date_and_time(
    offset_s: float, length_s: float
) -> None:
    trace = span(offset_s + length_s)
    moment = NOON + timedelta(seconds=offset_s)
    begin, _ = seconds_of(trace.part(moment.isoformat(), None, None))
    assert begin == pytest.approx(offset_s, abs=1e-4)


@given(st.integers(0, 999_999_999), st.integers(1, 599))
def test_a_whole_second_is_found_to_the_nanosecond(fraction_ns: int, second: int) -> None:
    noon_ns = int(NOON.timestamp()) * SECOND_NS
    trace = Span(7, 7 + 600 * SECOND_NS, noon_ns + fraction_ns)
    asked = f"12:{second // 60:02}:{second % 60:02}"
    assert trace.part(asked, None, None)[0] - 7 == second * SECOND_NS - fraction_ns


def sums(report: dict[str, Any]) -> tuple[float, float]:
    threads = [t for p in report["processes"] for gil in p["gils"] for t in gil["threads"]]
    return sum(t["held_s"] for t in threads), sum(t["waited_s"] for t in threads)


def test_parts_of_a_real_trace_add_up_to_it_and_say_which_they_are(ungil: Run) -> None:
    outcome = ungil("trace", "-q", "-o", "two.pftrace", "-c", TWO_THREADS)
    assert (outcome.returncode, outcome.stderr) == (0, "")

    def report(*arguments: str) -> dict[str, Any]:
        outcome = ungil("report", "two.pftrace", "--json", *arguments)
        assert (outcome.returncode, outcome.stderr) == (0, "")
        return json.loads(outcome.stdout)

    whole = report()
    assert whole["part"] is None
    middle = f"{whole['duration_s'] / 2:.9f}"
    parts = [report("--to", middle), report("--from", middle)]
    added = [sum(values) for values in zip(*map(sums, parts), strict=True)]
    assert added == pytest.approx(sums(whole), abs=2e-6)
    assert parts[0]["duration_s"] == pytest.approx(float(middle), abs=1e-8)
    assert parts[1]["part"]["start_s"] == parts[0]["part"]["end_s"]
    assert parts[0]["started_at"] == whole["started_at"]
    at = datetime.fromisoformat(parts[1]["part"]["started_at"])
    begin = datetime.fromisoformat(whole["started_at"])
    assert (at - begin).total_seconds() == pytest.approx(float(middle), abs=2e-3)
    text = ungil("report", "two.pftrace", "--from", middle).stdout
    assert f"from {float(middle):.2f}s ({at.astimezone():%H:%M:%S}) to " in text


def test_a_part_that_is_not_there_is_one_sentence(ungil: Run) -> None:
    assert ungil("trace", "-q", "-o", "t.pftrace", "-c", "pass").returncode == 0
    for arguments in (
        ["--from", "soon"],
        ["--from", "3600"],
        ["--last", "x"],
        ["--last", "3s", "--to", "3"],
    ):
        outcome = ungil("report", "t.pftrace", *arguments)
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("ungil: ")
        assert outcome.stderr.count("\n") == 1
