"""Who waited for whom, and the longest holds with their line of code."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ungil.report.model import Gil, LongHold
from ungil.report.threads import Names
from ungil.report.units import duration, plain, plural, share

NOBODY = "nobody"
"""What held while a thread waited and the GIL was on its way to it."""
CELL = 9


def blame_section(gil: Gil, names: Names, few: int, width: int) -> list[RenderableType]:
    """A matrix of victims and culprits if it fits and is complete, else the worst pairs."""
    waited: dict[tuple[str, str], float] = defaultdict(float)
    for blame in gil["blame"]:
        culprit = NOBODY if blame["culprit"] is None else names.of(blame["culprit"])
        waited[names.of(blame["victim"]), culprit] += blame["waited_s"]
    total = sum(waited.values())
    if total <= 0:
        return []
    victims = _by_time(waited, 0)
    culprits = _by_time(waited, 1)
    matrix_width = 18 + len(culprits) * (CELL + 1)
    if len(victims) <= few and matrix_width <= width and len(culprits) > 1:
        return [Text(), _matrix(waited, victims, culprits, total)]
    return [Text(), Text("Who waited for whom", style="bold"), *_pairs(waited, few, total)]


def _by_time(waited: dict[tuple[str, str], float], side: int) -> list[str]:
    """The names on one side of the pairs, the one with the most time first."""
    times: dict[str, float] = defaultdict(float)
    for pair, seconds in waited.items():
        times[pair[side]] += seconds
    return sorted(times, key=lambda name: times[name], reverse=True)


def _matrix(
    waited: dict[tuple[str, str], float], victims: list[str], culprits: list[str], total: float
) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text("Who waited\nfor whom", style="bold"), width=16, no_wrap=True)
    for culprit in culprits:
        head = Text("\n" + culprit)
        grid.add_column(head, width=CELL, justify="right", no_wrap=True, overflow="ellipsis")
    for victim in victims:
        cells: list[Text] = []
        for culprit in culprits:
            seconds = waited.get((victim, culprit), 0.0)
            style = "bold red" if seconds > total / 4 else "" if seconds > total / 100 else "dim"
            cells.append(Text(duration(seconds) if seconds else "-", style=style))
        grid.add_row(Text(victim), *cells)
    return grid


def _pairs(waited: dict[tuple[str, str], float], few: int, total: float) -> list[RenderableType]:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True, width=CELL)
    grid.add_column(overflow="ellipsis", no_wrap=True)
    worst = sorted(waited, key=lambda pair: waited[pair], reverse=True)
    for victim, culprit in worst[:few]:
        seconds = waited[victim, culprit]
        text = f"{victim} for {culprit}, {share(seconds, total)} of all waiting"
        grid.add_row(Text(duration(seconds)), Text(text))
    rest = worst[few:]
    if rest:
        seconds = sum(waited[pair] for pair in rest)
        grid.add_row(
            Text(duration(seconds), style="dim"),
            Text(f"in {len(rest):,} more pairs, {share(seconds, total)}", style="dim"),
        )
    return [grid]


@dataclass
class Site:
    """All long holds of one thread at one line of code."""

    thread: str
    stack: list[str]
    count: int
    longest_ms: float
    waited_s: float
    waiters_max: int


def holds_section(gil: Gil, names: Names, few: int) -> list[RenderableType]:
    """The longest holds, those of one thread at one line of code together."""
    sites: dict[tuple[int, str], Site] = {}
    for hold in sorted(gil["long_holds"], key=lambda hold: hold["duration_ms"], reverse=True):
        key = (hold["tid"], hold["stack"][0] if hold["stack"] else "")
        site = sites.setdefault(key, _site(hold, names))
        site.count += 1
        site.waited_s += hold.get("waited_s", 0.0)
        site.waiters_max = max(site.waiters_max, hold.get("waiters_max", 0))
    if not sites:
        return []
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True, width=CELL)
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=20)
    grid.add_column(overflow="fold")
    for site in list(sites.values())[:few]:
        times = "" if site.count == 1 else f", {site.count:,} times"
        waiters = ""
        if site.waited_s > 0:
            waiters = f", {duration(site.waited_s)} waited"
            if site.waiters_max:
                waiters += f" by up to {plural(site.waiters_max, 'thread')}"
        where = Text.assemble(
            (_where(site.stack), "bold" if site.stack else "dim"), (f"{times}{waiters}", "")
        )
        grid.add_row(Text(duration(site.longest_ms / 1e3)), Text(site.thread), where)
    lines: list[RenderableType] = [Text(), Text("Longest holds", style="bold"), grid]
    if len(sites) > few:
        lines.append(Text(f"{'':{CELL}} and at {len(sites) - few:,} more places", style="dim"))
    return lines


def _site(hold: LongHold, names: Names) -> Site:
    name = names.of(hold["tid"])
    if name == f"thread {hold['tid']}" and hold.get("name"):
        name = plain(hold.get("name", ""))
    return Site(name, hold["stack"], 0, hold["duration_ms"], 0.0, 0)


def _where(stack: list[str]) -> str:
    """The innermost frame, its file without the folders that nobody needs to recognise it."""
    if not stack:
        return "no stack"
    frame = plain(stack[0])
    match = re.fullmatch(r"(.*) \((.+):(\d+)\)", frame)
    if match is None:
        return frame
    function, file, line = match.groups()
    short = "/".join(PurePath(file).parts[-2:]) if file.startswith("/") else file
    return f"{function} ({short}:{line})"
