"""When something was: on the clock of whoever reads it."""

from __future__ import annotations

from datetime import datetime

from ungil.formatting import digits, duration, moment
from ungil.report.model import Finding, Report, Window


def when(window: Window, report: Report) -> str:
    """`12:03:41`, with the date if the trace began on another one, else `40.0s after the start`."""
    at = _local(window["started_at"])
    if at is None:
        return f"{digits(window['start_s'])}s after the start"
    begin = _local(report.get("started_at"))
    return moment(at, None if begin is None else begin.date())


def when_it_was_worst(finding: Finding, report: Report) -> tuple[str, str]:
    """What a finding says of time, before and after its sentence."""
    window, worst = finding.get("window"), finding.get("worst")
    if finding.get("scope") == "window" and window:
        return f"worst from {when(window, report)} for {_length(window)}: ", ""
    if worst:
        cost = duration(worst["cost_s"])
        return "", f"; worst from {when(worst, report)}: waited {cost} in {_length(worst)}"
    return "", ""


def part_of(report: Report) -> str | None:
    """Which part of a trace this report is about, None if it is all of it."""
    part = report.get("part")
    if part is None:
        return None
    begin, end = (f"{digits(part[edge])}s" for edge in ("start_s", "end_s"))
    at = f" ({when(part, report)})" if part["started_at"] else ""
    return f"from {begin}{at} to {end} of the trace"


def _length(window: Window) -> str:
    return duration(window["end_s"] - window["start_s"])


def _local(iso: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(iso).astimezone() if iso else None
    except (ValueError, OverflowError):  # of a year that no calendar has
        return None
