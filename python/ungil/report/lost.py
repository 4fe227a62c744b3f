"""Lost events in proportion to all events: what a report lacks for them."""

from __future__ import annotations

from rich.text import Text

from ungil.formatting import digits
from ungil.report.model import Report

TOLD = 0.001
"""A smaller part of all events (of 1) changes no number that is worth telling."""
MUCH = 0.05
"""So large a part is told before the numbers that lack it."""
INCOMPLETE = "medians, maxima, handoffs, blame and findings are incomplete"


def much_lost(report: Report) -> list[Text]:
    """A warning, with an empty line above, if numbers mean little for it."""
    share = report["lost_share"]
    if share <= MUCH:
        return []
    return [Text(), Text(f"{_percent(share)} of all events were lost: {INCOMPLETE}", "bold red")]


def lost_line(report: Report) -> Text:
    """How many, and how much that is."""
    lost, share = report["lost_events"], report["lost_share"]
    said = f"lost events: {lost:,}"
    if share > TOLD:
        said += f", {_percent(share)} of all"
        # It stands above otherwise.
        said += f": {INCOMPLETE}" if share <= MUCH else ""
    return Text(said, "bold red" if lost else "dim")


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.5 else f"{digits(percent, 2)} %"
