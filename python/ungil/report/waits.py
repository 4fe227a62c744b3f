"""Who waited for whom, and the longest holds with their line of code."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ungil.formatting import duration, plural, printable
from ungil.report.frames import short_frame
from ungil.report.model import Gil, LongHold, Native
from ungil.report.names import Names

VICTIM, CELL, WIDE_CELL = 16, 9, 16
"""Widths of the columns of the matrix: the first one, and the others at least and at most."""
RUNS = 0.9
"""The part of a hold for which its thread ran from which on nothing more is told of it."""
NAME = 20
"""How wide the name of a thread that held for long is at most."""


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
    cell = max(min((width - VICTIM) // len(heads) - 1, max(map(cell_len, heads)), WIDE_CELL), CELL)
    shown = names.fitted(heads, cell)
    rows = list(dict.fromkeys(victims.values()))
    shown_rows = names.fitted(rows, VICTIM)
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    grid.add_column(Text("Who waited\nfor whom", style="bold"), width=VICTIM, no_wrap=True)
    for head in heads:
        grid.add_column(Text(f"\n{shown[head]}"), width=cell, justify="right", no_wrap=True)
    for victim in rows:
        row = [cells.get((victim, culprit), 0.0) for culprit in heads]
        grid.add_row(Text(shown_rows[victim]), *(_cell(seconds, total) for seconds in row))
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
    """All long holds of one thread at one line of code, the longest first."""

    thread: str
    holds: list[LongHold]

    def place(self) -> Text:
        """Where it is, and which line of the user's own code led there."""
        longest = self.holds[0]
        if not longest["stack"]:
            why = longest.get("stack_missing")
            return Text(f"no stack: {printable(why)}" if why else "no stack", "dim")
        frame = longest["stack"][0]
        text = Text(short_frame(frame), "bold")
        user = next(filter(None, (hold.get("user_frame") for hold in self.holds)), None)
        if user is not None and user != frame:
            text.append(f", called by {short_frame(user)}", "not bold")
        native = self.native()
        if native is not None:
            text.append(f"; native code: {_native_name(native)}", "not bold")
        return text

    def native(self) -> Native | None:
        """The native function that most looks show; None if most show none."""
        natives = [native for hold in self.holds if (native := hold.get("native")) is not None]
        counts: dict[tuple[str | None, str], int] = defaultdict(int)
        for native in natives:
            counts[native["function"], native["library"]] += native["samples"]
        if not counts:
            return None
        most = max(counts, key=lambda place: counts[place])
        if counts[most] * 2 <= sum(hold.get("native_looks", 0) for hold in self.holds):
            return None
        return next(it for it in natives if (it["function"], it["library"]) == most)

    def facts(self) -> list[str]:
        """How many holds and samples stand for it, and what they cost others."""
        facts: list[str] = []
        if len(self.holds) > 1:
            facts.append(f"the longest of {len(self.holds):,}")
        samples = sum(hold.get("samples", 0) for hold in self.holds)
        there = sum(hold.get("stack_samples", 0) for hold in self.holds)
        if samples:
            part = f"{there:,} of " if there < samples else ""
            facts.append(part + plural(samples, "sample"))
        waited = sum(hold.get("waited_s", 0.0) for hold in self.holds)
        waiters = max(hold.get("waiters_max", 0) for hold in self.holds)
        if waited > 0:
            in_all = " in all" if len(self.holds) > 1 else ""
            facts.append(f"{_waiters(waiters, len(self.holds))} waited {duration(waited)}{in_all}")
        return facts


def _waiters(most: int, holds: int) -> str:
    """Who waited during some holds: never more than `most` threads at a time, if that is known."""
    if not most:
        return "others"
    if holds == 1 or most == 1:
        return plural(most, "thread")
    return f"up to {plural(most, 'thread')} at a time"


def holds_section(gil: Gil, names: Names, few: int, width: int) -> list[RenderableType]:
    """The longest holds that made somebody wait, those of one thread at one line together."""
    contended = [hold for hold in gil["long_holds"] if hold.get("contended", True)]
    sites: dict[tuple[str, str], Site] = {}
    for hold in sorted(contended, key=lambda hold: hold["duration_ms"], reverse=True):
        name = names.of(hold["tid"], hold.get("name"))
        where = hold["stack"][0] if hold["stack"] else hold.get("stack_missing") or ""
        sites.setdefault((name, where), Site(name, [])).holds.append(hold)
    if not sites:
        return []
    shown = list(sites.values())[:few]
    fitted = names.fitted([site.thread for site in shown], min(NAME, max(width // 4, 8)))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True, width=CELL)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for site in shown:
        longest = duration(site.holds[0]["duration_ms"] / 1e3)
        place = site.place()
        place.append(_parts(site.holds[0]), "not bold dim")
        place.append("".join(f"; {fact}" for fact in site.facts()), "not bold")
        grid.add_row(Text(longest), Text(fitted[site.thread]), place)
    lines: list[RenderableType] = [Text(), Text("Longest holds", style="bold"), grid]
    if len(sites) > few:
        more = plural(len(sites) - few, "more place")
        lines.append(Text(f"{'':{CELL}} and at {more}", style="dim"))
    return lines


def _parts(hold: LongHold) -> str:
    """What a hold was made of, if the holder did not run nearly all the time."""
    cpu_ms, not_run_ms = hold.get("cpu_ms"), hold.get("not_run_ms")
    if cpu_ms is None or cpu_ms >= RUNS * hold["duration_ms"]:
        return ""
    ran = f"ran {duration(cpu_ms / 1e3)}"
    if not_run_ms is None:
        return f"; {ran}"
    stopped_ms = hold.get("stopped_ms", 0.0)
    slept_ms = hold["duration_ms"] - cpu_ms - not_run_ms - stopped_ms
    parts = {"not run": not_run_ms, "stopped by ungil": stopped_ms, "slept": slept_ms}
    told = [
        f"{what} {duration(ms / 1e3)}"
        for what, ms in parts.items()
        if ms > (1 - RUNS) * hold["duration_ms"]
    ]
    return f"; {', '.join([ran, *told])}"


def _native_name(native: Native) -> str:
    """A native function with its library, and with the one that was running if that is another."""
    called = _in_library(native["function"], native["library"])
    function, library = native["innermost"], native["innermost_library"]
    if library in ("", native["library"]) and function in (None, native["function"]):
        return called
    return f"{called}, mostly {_in_library(function, library)}"


def _in_library(function: str | None, library: str) -> str:
    file = printable(library.rpartition("/")[2]) or "code generated at run time"
    return f"a function in {file}" if function is None else f"{printable(function)} ({file})"
