"""What threads waited for in locks, off the GIL, and which threads let go of these."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ungil.formatting import duration, share, tally
from ungil.report.model import ParkedAt, Process, Waker
from ungil.report.names import Names

LEAST = 0.01
"""Who waited for less than this part of the time does not wait for locks."""
WIDTH = 20
"""How wide names are at most."""
ENDERS = 3
"""How many threads are named that ended the waits of one."""


def locks_section(process: Process, names: Names, seconds: float, few: int) -> list[RenderableType]:
    """Locks that threads of `process` took in turn, recorded for `seconds`, in few rows.

    What idle threads wait at (a queue, a condition) is not among them.
    """
    contended = [it for it in process.get("lock_waits", []) if it.get("contended")]
    waits = [it for it in contended if it["waited_s"] >= LEAST * seconds][:few]
    if not waits:
        return []
    everyone = [it for wait in waits for it in (wait, *wait["wakers"][:ENDERS])]
    fitted = names.fitted({_called(it, names) for it in everyone}, WIDTH)
    numbers: dict[int | None, int] = {}
    for wait in waits:
        numbers.setdefault(wait["lock"], len(numbers) + 1)
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text("Who waited for locks", style="bold"), no_wrap=True)
    for head in ("waited", "", "times", "max", "lock"):
        grid.add_column(head, justify="right", no_wrap=True)
    grid.add_column("released by", overflow="fold")
    for wait in waits:
        enders = [
            f"{fitted[_called(it, names)]} {share(it['waited_s'], wait['waited_s'])}"
            for it in wait["wakers"][:ENDERS]
        ]
        grid.add_row(
            Text(fitted[_called(wait, names)]),
            duration(wait["waited_s"]),
            share(wait["waited_s"], seconds),
            tally(wait["count"]),
            duration(wait["max_ms"] / 1e3),
            f"{numbers[wait['lock']]}",
            Text(", ".join(enders)),
        )
    return [Text(), grid]


def _called(thread: ParkedAt | Waker, names: Names) -> str:
    """What to call it; who ended a wait may not be known."""
    tid = thread["tid"]
    return "unknown" if tid is None else names.of(tid, thread["name"])
