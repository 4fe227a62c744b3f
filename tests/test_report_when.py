"""How the screen says when it was, drawn from hand-made JSON."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any, cast

from rich.console import Console
from test_report_rendering import convoy

from ungil.report import Report, render

BEGAN = "2026-01-31T12:00:00.250Z"


def local(iso: str) -> str:
    return f"{datetime.fromisoformat(iso).astimezone():%H:%M:%S}"


def drawn(report: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=400, highlight=False)
    render(cast(Report, report), console)
    return cast(io.StringIO, console.file).getvalue()


def window(start_s: float, end_s: float, started_at: str | None) -> dict[str, Any]:
    return {"start_s": start_s, "end_s": end_s, "started_at": started_at}


def with_finding(**changes: Any) -> dict[str, Any]:
    report: dict[str, Any] = {**convoy(), "started_at": BEGAN}
    finding: dict[str, Any] = report["findings"][0]
    report["findings"] = [{**finding, "text": "T", **changes}]
    return report


def test_a_finding_about_one_window_says_when_it_was() -> None:
    at = "2026-01-31T12:00:40.250Z"
    report = with_finding(scope="window", window=window(40, 40.5, at), worst=None)
    assert f" worst from {local(at)} for 500ms: T " in drawn(report)


def test_a_finding_about_the_run_says_when_it_was_worst() -> None:
    at = "2026-01-31T12:03:41.000Z"
    worst = window(220.75, 230.75, at) | {"cost_s": 6.1}
    report = with_finding(scope="run", window=window(0, 300, BEGAN), worst=worst)
    assert f" T; worst from {local(at)}: waited 6.10s in 10.0s " in drawn(report)


def test_a_window_on_another_day_says_which() -> None:
    at = "2026-02-03T12:00:40.250Z"
    report = with_finding(scope="window", window=window(259240, 259240.5, at), worst=None)
    assert f"worst from 2026-02-03 {local(at)} for 500ms: T" in drawn(report)


def test_a_trace_that_does_not_know_the_time_counts_from_its_start() -> None:
    report = with_finding(scope="window", window=window(40, 40.5, None), worst=None)
    assert "worst from 40.0s after the start for 500ms: T" in drawn(report | {"started_at": None})


def test_a_report_of_a_part_says_so() -> None:
    at = datetime(2026, 1, 31, 12, 0, 30, tzinfo=UTC).isoformat()
    part = window(30, 60, at) | {"cut_holds": 1, "cut_waits": 2}
    assert f"from 30.0s ({local(at)}) to 60.0s of the trace\n" in drawn(
        with_finding(part=part) | {"part": part}
    )


def test_the_share_of_the_gil_leaves_out_the_startup_and_shows_it() -> None:
    report = with_finding()
    process = report["processes"][0] | {"startup_s": 1.0, "duration_s": 5.0}
    changes = {"held_s": 1.9, "startup_held_s": 0.9, "wanting_busy_mean": 0.5, "handoffs": 8}
    process["gils"] = [process["gils"][0] | changes]
    report["processes"] = [process, *report["processes"][1:]]
    text = drawn(report)
    assert "GIL  held 25%, " in text
    assert "2.00 handoffs/s" in text
    assert "0.50 threads wanted to run on average" in text
    assert "leaves out the first 1.00s, when there was one thread, which held it for 90%" in text
