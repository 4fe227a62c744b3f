"""What the threads of a free-threaded Python slept for while it had no GIL, and who woke them."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ungil.formatting import duration, plural, printable, share, tally
from ungil.report.model import Parked, ParkedAt, ParkedIn, ParkedThread, Process, Waker

CAUSES = {
    "object": "objects",
    "lock": "own locks",
    "internal": "internal",
    "pause": "pauses",
    "stopping": "stopping",
    "event": "events",
}
"""The heads of the columns, by cause."""
TAKEN_TWICE = ("object", "internal")
"""Causes of locks that a thread takes again where it has them already."""
NEARLY_ALL = 0.95
NAME = 20
"""How wide names are at most."""
UNSEEN = (
    "not seen: locks that were free, or became free during the 40 tries of a thread; threads that "
    "never slept for a lock; and which thread held a lock: the waker is the thread that released "
    "it last"
)


def parks_section(process: Process, seconds: float, few: int) -> list[RenderableType]:
    """The sleeps of the threads of `process`, recorded for `seconds`, in few rows each."""
    parks = process.get("parks")
    if not parks:
        return []
    names = Counter(printable(thread["name"]) for thread in parks["threads"])
    pauses = parks["pauses"]
    said = f"{plural(pauses['count'], 'pause')} of the world"
    if pauses["count"]:
        said += (
            f", {duration(pauses['stopped_s'])} in all ({share(pauses['stopped_s'], seconds)}), "
            f"{duration(pauses['max_ms'] / 1e3)} at most"
        )
    if pauses["collections"]:
        said += f"; {pauses['collections']:,} of them were garbage collections"
    own = [it for it in parks["waits"] if it["cause"] in TAKEN_TWICE and _is_its_own(it)]
    if own:
        said += f"\n{_said_of_own(own)}"
    threads = _threads(parks["threads"], names, 2 * few)
    told = [it for it in parks["waits"] if it["cause"] != "event" and not _is_its_own(it)]
    waits = _waits(told, names, few)
    more = len(parks["threads"]) - 2 * few
    rest: list[RenderableType] = [Text(f"  and {more:,} more", style="dim")] if more > 0 else []
    return [Text(), Text(said), Text(), threads, *rest, *waits, Text(), Text(UNSEEN, style="dim")]


def _said_of_own(own: list[ParkedAt]) -> str:
    """What is to be known of parks for locks that the threads had themselves."""
    by_place: Counter[str] = Counter()
    for row in own:
        for place in row.get("places", []):
            by_place[place["frame"]] += place["count"]
    said = (
        f"{plural(sum(it['count'] for it in own), 'park')}, "
        f"{duration(sum(it['waited_s'] for it in own))} in total, ended by the thread itself: "
        "sometimes Python acquires a lock twice"
    )
    if by_place:
        ((frame, count),) = by_place.most_common(1)
        said += f", {count:,} times at {_line(frame, None)}"
    return said


def _threads(threads: list[ParkedThread], names: Counter[str], rows: int) -> Table:
    present = {it["cause"] for thread in threads for it in thread["causes"]}
    columns = [cause for cause in CAUSES if cause in present]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(Text("Parked for", style="bold"), max_width=NAME, no_wrap=True)
    for cause in columns:
        table.add_column(CAUSES[cause], justify="right", no_wrap=True)
    for head in ("parks", "p50", "p99", "max"):
        table.add_column(head, justify="right", no_wrap=True)
    for thread in threads[:rows]:
        causes = {it["cause"]: it for it in thread["causes"]}
        cells = [_total(causes.get(cause)) for cause in columns]
        table.add_row(Text(_called(thread, names)), *cells, *_lengths(list(causes.values())))
    return table


def _total(parked: Parked | None) -> str:
    return duration(parked["waited_s"]) if parked else "-"


def _lengths(causes: list[Parked]) -> tuple[str, str, str, str]:
    """How often it slept, and for how long where it slept longest in all, events last."""
    most = max(causes, key=lambda it: (it["cause"] != "event", it["waited_s"]))["parks"]
    count = sum(it["parks"]["count"] for it in causes)
    p50, p99, longest = (duration(most[key] / 1e6) for key in ("p50_us", "p99_us", "max_us"))
    return tally(count), p50, p99, longest


def _waits(waits: list[ParkedAt], names: Counter[str], rows: int) -> list[RenderableType]:
    if not waits:
        return []
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text("Who waited for what", style="bold"), max_width=NAME, no_wrap=True)
    grid.add_column("waited", justify="right", no_wrap=True)
    grid.add_column("parks", justify="right", no_wrap=True)
    grid.add_column("for", overflow="fold")
    grid.add_column("at", overflow="fold")
    grid.add_column("woken by", overflow="fold")
    for wait in waits[:rows]:
        woken = [_share_of(waker, wait, names) for waker in wait["wakers"][:3]]
        grid.add_row(
            Text(_called(wait, names)),
            duration(wait["waited_s"]),
            tally(wait["count"]),
            Text(_what(wait)),
            Text(", ".join(_at(place, wait) for place in wait.get("places", [])[:2])),
            Text(", ".join(woken)),
        )
    return [Text(), grid]


def _at(place: ParkedIn, wait: ParkedAt) -> str:
    """A line of code, with its part of the waiting if it is not nearly all."""
    line = _line(place["frame"], place["user_frame"])
    part = place["waited_s"] / wait["waited_s"] if wait["waited_s"] else 1.0
    return line if part > NEARLY_ALL else f"{line} {share(place['waited_s'], wait['waited_s'])}"


def _line(frame: str, users: str | None) -> str:
    """Of `f (/srv/app.py:7)`: app.py:7; and from which line of the user's own that was called."""
    line = printable(frame.rpartition(" (")[2].removesuffix(")").rpartition("/")[2])
    return line if users in {None, frame} else f"{line} from {_line(users or '', None)}"


def _is_its_own(wait: ParkedAt) -> bool:
    """Whether the thread mostly woke itself: it let go of that lock itself, to park."""
    own = sum(it["waited_s"] for it in wait["wakers"] if it["tid"] == wait["tid"])
    return own > wait["waited_s"] / 2


def _share_of(waker: Waker, wait: ParkedAt, names: Counter[str]) -> str:
    part = share(waker["waited_s"], wait["waited_s"])
    frame = waker.get("frame")
    if frame:
        part = f"({_line(frame, waker.get('user_frame'))}) {part}"
    tid, name = waker["tid"], waker["name"]
    if tid is None:
        return f"unknown {part}"
    if tid == wait["tid"]:
        return f"itself {part}"
    return f"{_name(tid, name or '', names)} {part}"


def _what(wait: ParkedAt) -> str:
    of = printable(wait["of"] or "")
    match wait["cause"]:
        case "object":
            return f"the lock of one {of or 'object'}"
        case "lock":
            return f"one {of or 'lock of the program'}"
        case "pause":
            return "a pause of the world"
        case "stopping":
            return "all others to stop"
        case _:
            return "a lock of the interpreter or an extension"


def _called(thread: ParkedThread | ParkedAt, names: Counter[str]) -> str:
    return _name(thread["tid"], thread["name"], names)


def _name(tid: int, name: str, names: Counter[str]) -> str:
    """The name, with the id where it does not tell threads apart."""
    shown = printable(name)
    if not shown:
        return str(tid)
    return f"{shown} ({tid})" if names[shown] > 1 else shown
