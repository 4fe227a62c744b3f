"""What threads waited for in locks, off the GIL, and which threads let go of these."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ungil.formatting import duration, printable, share, tally
from ungil.report.model import ParkedAt, Process
from ungil.report.parks import NAME, called, ended_by

LEAST = 0.01
"""Who waited for less than this part of the time does not wait for locks."""


def locks_section(process: Process, seconds: float, few: int) -> list[RenderableType]:
    """Locks that threads of `process` took in turn, recorded for `seconds`, in few rows.

    What idle threads wait at (a queue, a condition) is not among them.
    """
    contended = [it for it in process.get("lock_waits", []) if it.get("contended")]
    waits = [it for it in contended if it["waited_s"] >= LEAST * seconds]
    if not waits:
        return []
    tids = {(wait["tid"], printable(wait["name"])) for wait in contended}
    names = Counter(name for _, name in tids)
    numbers = {wait["lock"]: place for place, wait in enumerate(_by_lock(waits), start=1)}
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text("Who waited for locks", style="bold"), max_width=NAME, no_wrap=True)
    for head in ("waited", "", "times", "max", "lock"):
        grid.add_column(head, justify="right", no_wrap=True)
    grid.add_column("until it was let go of by", overflow="fold")
    for wait in waits[:few]:
        grid.add_row(
            Text(called(wait, names)),
            duration(wait["waited_s"]),
            share(wait["waited_s"], seconds),
            tally(wait["count"]),
            duration(wait["max_ms"] / 1e3),
            f"{numbers[wait['lock']]}",
            Text(", ".join(ended_by(waker, wait, names) for waker in wait["wakers"][:3])),
        )
    return [Text(), grid]


def _by_lock(waits: list[ParkedAt]) -> list[ParkedAt]:
    """The first wait of each lock."""
    return list({wait["lock"]: wait for wait in reversed(waits)}.values())[::-1]
