"""The lines above and below the table of threads."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.text import Text

from ungil.cli.live.moment import Frame
from ungil.cli.top.figures import Blamed, Figures
from ungil.formatting import digits, duration, plural, printable, share
from ungil.report import names

SHORTEST_BAR, LONGEST_BAR = 6, 40


def gil(shown: Figures, width: int) -> Text:
    """How much the GIL was held and fought for, and by which policy it goes on."""
    quantum = f" {1e3 * shown.quantum_s:.2g} ms" if shown.quantum_s else ""
    after = (
        f" held {share(shown.held, 1)}  contended {share(shown.contended, 1)}"
        f"  {digits(shown.handoffs)} handoffs/s  {shown.policy}{quantum}"
    )
    length = min(LONGEST_BAR, max(SHORTEST_BAR, width - len(after) - 6))
    contended = round(shown.contended * length)
    held = max(contended, round(shown.held * length))
    line = Text("GIL ", no_wrap=True, overflow="ellipsis")
    line.append("━" * contended, "red")
    line.append("━" * (held - contended), "green")
    line.append("─" * (length - held), "dim")
    line.append(after)
    if shown.lost_events:
        line.append(f"  {shown.lost_events:,} events lost", "red")
    return line


def holder(shown: Figures) -> Text:
    """Who holds it now, and where."""
    thread = shown.holder
    line = Text(no_wrap=True, overflow="ellipsis")
    waiting = len(shown.moment.waiters(thread.gil if thread else 0))
    if thread is None:
        line.append("nobody holds it now", "dim")
    else:
        line.append(printable(thread.name), "bold red")
        least = "at least " if thread.at_least else ""
        line.append(f" holds it, for {least}{duration(thread.for_s or 0)}")
    if waiting:
        line.append(f"; {plural(waiting, 'thread')} wait{'s' if waiting == 1 else ''}", "yellow")
    if thread is not None and thread.stack:
        line.append(f"  {_place(thread.stack[0])}", "dim")
    return line


def blame(blamed: Sequence[Blamed], width: int) -> Text:
    """For whom others waited, a line each."""
    lines = Text(no_wrap=True, overflow="ellipsis")
    if not blamed:
        return Text("nobody waited", style="dim")
    lines.append("waited for", "dim")
    for it in blamed:
        place = f"  {_place(it.line)}" if it.line else ""
        victims = ", ".join(f"{printable(name)} {share(part, 1)}" for name, part in it.victims)
        head = f"{names.shortened(printable(it.name), 17):<17} {share(it.waited, 1):>5}  "
        room = max(10, width - len(head) - len(place) - 4)
        lines.append("\n")
        lines.append(head, "" if it.tid is not None else "dim")
        lines.append(f"by {shortened(victims, room)}")
        lines.append(place, "dim")
    return lines


def command(words: Sequence[str]) -> str:
    """A command line without the folders of its program and its script."""
    last_parts = [it.rsplit("/", 1)[-1] or it for it in words[:2]]
    return shlex.join([*last_parts, *words[2:]])


def shortened(text: str, width: int) -> str:
    """`text` in that many columns at most."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _place(frame: Frame) -> str:
    name = frame.file.rsplit("/", 1)[-1]
    return printable(f"{frame.function} ({name}:{frame.line})")
