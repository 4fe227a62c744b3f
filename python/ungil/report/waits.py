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
from ungil.report.units import duration, plain, plural

VICTIM, CELL, WIDE_CELL = 16, 9, 16
"""Widths of the columns of the matrix: the first one, and the others at least and at most."""
RUNS = 0.9
"""The part of a hold for which its thread ran from which on nothing more is told of it."""


def blame_section(gil: Gil, names: Names, few: int, width: int) -> list[RenderableType]:
    """The matrix of victims and culprits: the worst by name, the others summed."""
    waited: dict[tuple[str, str], float] = defaultdict(float)
    for blame in gil["blame"]:
        victim = names.of(blame["victim"], blame.get("victim_name"))
        culprit = names.of(blame["culprit"], blame.get("culprit_name"))
        waited[victim, culprit] += blame["waited_s"]
    total = sum(waited.values())
    if total <= 0:
        return []
    columns = max((width - VICTIM) // (CELL + 1), 2)
    victims = _worst(_by_time(waited, side=0), few + 1)
    culprits = _worst(_by_time(waited, side=1), min(columns, few + 2))
    cells: dict[tuple[str, str], float] = defaultdict(float)
    for (victim, culprit), seconds in waited.items():
        cells[victims[victim], culprits[culprit]] += seconds
    heads = list(dict.fromkeys(culprits.values()))
    cell = max(min((width - VICTIM) // len(heads) - 1, max(map(len, heads)), WIDE_CELL), CELL)
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    title = Text("Who waited\nfor whom", style="bold")
    grid.add_column(title, width=VICTIM, no_wrap=True, overflow="ellipsis")
    for head in heads:
        text = Text(f"\n{head}")
        grid.add_column(text, width=cell, justify="right", no_wrap=True, overflow="ellipsis")
    for victim in dict.fromkeys(victims.values()):
        row = [cells.get((victim, culprit), 0.0) for culprit in heads]
        grid.add_row(Text(victim), *(_cell(seconds, total) for seconds in row))
    return [Text(), grid]


def _cell(seconds: float, total: float) -> Text:
    style = "bold red" if seconds > total / 4 else "" if seconds > total / 100 else "dim"
    return Text(duration(seconds) if seconds > 0 else "-", style=style)


def _by_time(waited: dict[tuple[str, str], float], side: int) -> list[str]:
    """The names on one side of the pairs, the one with the most time first."""
    times: dict[str, float] = defaultdict(float)
    for pair, seconds in waited.items():
        times[pair[side]] += seconds
    return sorted(times, key=lambda name: times[name], reverse=True)


def _worst(names: list[str], limit: int) -> dict[str, str]:
    """From each name to the line it is shown in: its own, or the one of all that do not fit."""
    named = len(names) if len(names) <= limit else limit - 1
    rest = f"{len(names) - named:,} more"
    return {name: name if index < named else rest for index, name in enumerate(names)}


@dataclass
class Site:
    """All long holds of one thread at one line of code."""

    thread: str
    stack: list[str]
    count: int
    longest_ms: float
    waited_s: float
    waiters_max: int
    longest: str
    """What became of the longest of them."""


def holds_section(gil: Gil, names: Names, few: int) -> list[RenderableType]:
    """The longest holds that made somebody wait, those of one thread at one line together."""
    contended = [hold for hold in gil["long_holds"] if hold.get("contended", True)]
    sites: dict[tuple[int, str], Site] = {}
    for hold in sorted(contended, key=lambda hold: hold["duration_ms"], reverse=True):
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
            (_where(site.stack), "bold" if site.stack else "dim"),
            (f"{times}{waiters}", ""),
            (site.longest, "dim"),
        )
        grid.add_row(Text(duration(site.longest_ms / 1e3)), Text(site.thread), where)
    lines: list[RenderableType] = [Text(), Text("Longest holds", style="bold"), grid]
    if len(sites) > few:
        lines.append(Text(f"{'':{CELL}} and at {len(sites) - few:,} more places", style="dim"))
    return lines


def _site(hold: LongHold, names: Names) -> Site:
    name = names.of(hold["tid"], hold.get("name"))
    return Site(name, hold["stack"], 0, hold["duration_ms"], 0.0, 0, _parts(hold))


def _parts(hold: LongHold) -> str:
    """What a hold was made of, if the holder did not run nearly all the time."""
    cpu_ms, not_run_ms = hold.get("cpu_ms"), hold.get("not_run_ms")
    if cpu_ms is None or cpu_ms >= RUNS * hold["duration_ms"]:
        return ""
    ran = f"ran {duration(cpu_ms / 1e3)}"
    if not_run_ms is None:
        return f" ({ran})"
    parts = {"not run": not_run_ms, "slept": hold["duration_ms"] - cpu_ms - not_run_ms}
    told = [
        f"{what} {duration(ms / 1e3)}"
        for what, ms in parts.items()
        if ms > (1 - RUNS) * hold["duration_ms"]
    ]
    return f" ({', '.join([ran, *told])})"


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
