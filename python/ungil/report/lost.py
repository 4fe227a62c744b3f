"""Lost events in proportion to all events: what a report lacks for them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ungil.formatting import digits
from ungil.report.model import Gil, Report

TOLD = 0.001
"""A smaller part of all events (of 1) changes no number that is worth telling."""
MUCH = 0.05
"""So large a part is told before the numbers that lack it."""
INCOMPLETE = "medians, maxima, handoffs, blame and findings are incomplete"


def lost_share(report: Report) -> float:
    """The part (of 1) of all events that was lost; 0 if it is not known."""
    lost = report["lost_events"]
    all_ = sum(events for it in report["processes"] for gil in it["gils"] for events in _of(gil))
    return min(lost / all_, 1.0) if lost and all_ else 0.0


def _of(gil: Gil) -> Iterator[int]:
    """How many events threads wrote, or lost: two for each hold, one or two for each wait."""
    for it in gil["threads"]:
        yield 2 * it["holds"]["count"] + it["waits"]["count"] + it.get("drop_requests", 0)
        # What a thread has counted itself contains them. That of one that still runs is not known.
        if it.get("ended_s", 0.0) is None:
            yield it.get("lost_events", 0)
    others = gil.get("others")
    if others:
        yield 2 * others.get("holds", 0) + others.get("waits", 0) + others.get("drop_requests", 0)


def much_lost(report: Report) -> list[Text]:
    """A warning, with an empty line above, if numbers mean little for it."""
    share = lost_share(report)
    if share <= MUCH:
        return []
    return [Text(), Text(f"{_percent(share)} of all events were lost: {INCOMPLETE}", "bold red")]


def lost_line(report: Report) -> Text:
    """How many, and how much that is."""
    lost, share = report["lost_events"], lost_share(report)
    said = f"lost events: {lost:,}"
    if share > TOLD:
        said += f", {_percent(share)} of all"
        # It stands above otherwise.
        said += f": {INCOMPLETE}" if share <= MUCH else ""
    return Text(said, "bold red" if lost else "dim")


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.5 else f"{digits(percent, 2)} %"
