"""The whole report, fitted to the height of the terminal.

Everything but the table of threads has a small limit of its own; that table gets the lines which
the rest leaves.
"""

from __future__ import annotations

import shlex
from pathlib import PurePath

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ungil.formatting import at_most_three_digits, duration, plural, printable, rate, share
from ungil.report.advice import TOLD, advice_section, is_repeated
from ungil.report.locks import locks_section
from ungil.report.lost import lost_line, much_lost
from ungil.report.model import Finding, Gil, OtherProcesses, Process, Report
from ungil.report.names import Names
from ungil.report.numbered import lines_used
from ungil.report.parks import parks_section
from ungil.report.program import program
from ungil.report.repeats import the_same, with_repeats
from ungil.report.threads import thread_table
from ungil.report.waits import blame_section, holds_section
from ungil.report.when import part_of, when_it_was_worst

FINDINGS = 6
FEW_IN_A_FILE = 6
ROWS_OF_A_FILE = 25
ROWS_AT_LEAST = 5
LINES_OF_A_HEADING = 2
CLEARLY = 0.8
"""A process that was recorded for less than this part (of 1) of a trace is told by its own time."""
# The lines that name the trace file, and the prompt.
LINES_BELOW = 3
STYLES = {
    "none": "green",
    "unfair": "yellow",
    "not-recorded": "yellow",
    "gil-switched-on": "yellow",
}
WORDS = {"none": "ok", "not-recorded": "not recorded", "gil-switched-on": "GIL on"}
LIMIT = ("bottleneck", "yellow")
"""The word for a finding that no thread is at a disadvantage, but the GIL is the limit of all."""
FREE_THREADED = {
    "on": "free-threaded, with its GIL on from the start: PYTHON_GIL=1 or -X gil=1",
    "switched on": ("free-threaded, and an import switched its GIL on after {after}"),
}


def render(report: Report, console: Console, advice: int = TOLD) -> None:
    """Draw `report` on `console`, with so many pieces of advice at most."""
    height = console.height if console.is_terminal else None
    few = FEW_IN_A_FILE if height is None else min(max(height // 10, 2), FEW_IN_A_FILE)
    gil = _main_gil(report)
    above = [*_title(report), *_findings(report), *much_lost(report)]
    below = [
        *_other_gils(report, gil, few),
        *_other_processes(report, few, console.width),
        *_last_words(report),
    ]
    parks = [
        section
        for process in report["processes"][:1]
        for section in parks_section(process, _seconds(process, report), few)
    ]
    if gil is None:
        console.print(Group(*above, *parks, *below))
        return
    below[:0] = parks
    names = Names(gil)
    process = report["processes"][0]
    seconds = _seconds(process, report)
    above += [*advice_section(report, advice), Text(), _gil_line(gil, process, seconds), Text()]
    below[:0] = [
        *blame_section(gil, names, few, console.width),
        *locks_section(process, names, seconds, few),
        *holds_section(gil, names, few, console.width),
        *_stops(process),
    ]
    rows = ROWS_OF_A_FILE
    if height is not None:
        used = lines_used(console, *above, *below)
        rows = max(height - used - LINES_OF_A_HEADING - LINES_BELOW, ROWS_AT_LEAST)
    table = thread_table(gil, names, seconds, rows, console.width)
    # Code to copy is as wide as it is.
    console.print(Group(*above, table, *below), crop=False)


def _main_gil(report: Report) -> Gil | None:
    """The GIL that the table is about: in the largest process, the one that was wanted most."""
    for process in report["processes"][:1]:
        if not process.get("not_recorded"):  # A free-threaded one has a GIL for moments.
            return max(process["gils"], key=lambda gil: gil["wanting_mean"], default=None)
    return None


def _title(report: Report) -> list[RenderableType]:
    if not report["processes"]:
        return [Text("No Python process was recorded", style="bold yellow")]
    process = report["processes"][0]
    # A thread has a row at each GIL that it used, and a later thread can have its tid.
    rows = (thread for gil in process["gils"] for thread in gil["threads"])
    listed = {(thread["tid"], thread.get("started_s")) for thread in rows}
    tids = {tid for tid, _ in listed}
    parks = process.get("parks")
    listed |= {
        (it["tid"], None) for it in (parks["threads"] if parks else []) if it["tid"] not in tids
    }
    threads = len(listed) + sum(_unlisted(gil) for gil in process["gils"])
    python = process.get("python") or report["python"]
    facts = [f"pid {process['pid']}", f"Python {printable(python)}" if python else "no Python"]
    # One that never slept for a lock, and had no GIL to take, is not known.
    facts += [_life(process, report), plural(threads, "thread") + " seen" * bool(parks)]
    facts += _processors(process)
    unlisted = report.get("other_processes")
    count = len(report["processes"]) + (unlisted["processes"] if unlisted else 0)
    if count > 1:
        facts.append(f"1 of {count:,} processes")
    title = Text.assemble((_command(process, report), "bold"), "  ", (", ".join(facts), "dim"))
    part = part_of(report)
    if part:
        title.append(f"\n{part}", style="bold yellow")
    missing = process.get("not_recorded")
    if missing and not any(_says(finding, missing) for finding in report["findings"]):
        return [title, _missing(process, missing)]
    return [title, *_free_threaded(process)]


def _life(process: Process, report: Report) -> str:
    """How long it was recorded, and of how much, if that is clearly more."""
    lived, all_ = _seconds(process, report), report["duration_s"]
    if lived > CLEARLY * all_ or part_of(report):
        return duration(all_)
    return f"{duration(lived)} of {duration(all_)}"


def _processors(process: Process) -> list[str]:
    """How many processors it may use; an older report does not tell."""
    known = process.get("processors")
    if known is None:
        return []
    allowed = plural(known["allowed"], "processor")
    limit = known["limit"]
    if limit is None or limit >= known["allowed"]:
        return [allowed]
    return [f"{at_most_three_digits(limit)} of {allowed} (CPU limit)"]


def _says(finding: Finding, missing: str) -> bool:
    """Whether a finding says already why a GIL was not recorded."""
    return finding["kind"] == "not-recorded" or missing in finding["text"]


def _missing(process: Process, missing: str) -> Text:
    """Why its GIL was not recorded. What its threads slept for without one may have been."""
    label = "" if process.get("parks") else "not recorded: "
    return Text(f"{label}{printable(missing)}", style="yellow")


def _free_threaded(process: Process) -> list[RenderableType]:
    """Whether a free-threaded Python had a GIL."""
    state = process.get("free_threaded")
    text = FREE_THREADED.get(state["gil"] or "") if state else None
    if state is None or text is None:
        return []
    after = (state["gil_on_s"] or 0.0) - process.get("started_s", 0.0)
    return [Text(text.format(after=duration(max(after, 0.0))), style="yellow")]


def _findings(report: Report) -> list[RenderableType]:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    told = with_repeats(report["findings"])
    for finding, repeats in told[:FINDINGS]:
        kind = finding["kind"]
        before, after = when_it_was_worst(finding, report)
        text = Text.assemble((before, "bold"), printable(finding["text"]), after)
        advice = finding.get("advice")
        if advice and not is_repeated(finding, report):
            text.append(f"\n{printable(advice)}", style="dim")
        same = the_same(it.get("pid") for it in repeats)
        if same:
            text.append(f"\n{same}", style="dim")
        if kind == "none" and advice:
            word, style = LIMIT
        else:
            word, style = WORDS.get(kind) or printable(kind), STYLES.get(kind, "red")
        grid.add_row(Text(word, style=f"bold {style}"), text)
    more = len(told) - FINDINGS
    if more > 0:
        grid.add_row(
            Text(), Text(f"and {plural(more, 'further finding')} in the JSON", style="dim")
        )
    return [Text(), grid] if report["findings"] else []


def _stops(process: Process) -> list[RenderableType]:
    """How long threads stood still to be looked at."""
    stopped = process.get("stopped")
    if stopped is None:
        return []
    longest, total = duration(stopped["max_us"] / 1e6), duration(stopped["total_ms"] / 1e3)
    times = plural(stopped["times"], "time")
    told = f"to see native code, ungil stopped threads {times}, {longest} at most, {total} in all"
    return [Text(told, style="dim")]


def _gil_line(gil: Gil, process: Process, seconds: float) -> Text:
    """What all threads together made of the GIL, since there were several."""
    alone_s = process.get("startup_s") or 0.0
    alone_held_s = gil.get("startup_held_s", 0.0)
    busy_s = seconds - alone_s
    contended = share(gil["contended_s"], busy_s)
    style = "yellow" if gil["contended_s"] > busy_s / 10 else ""
    interval = process.get("switch_interval_ms")
    policy = process.get("policy") or "stock"
    turn = "switch interval" if policy == "stock" else f"policy {policy}, quantum"
    return Text.assemble(
        (_gil_name(gil) if len(process["gils"]) > 1 else "GIL", "bold"),
        f"  held {share(gil['held_s'] - alone_held_s, busy_s)}, ",
        (f"contended {contended}", style),
        f" of the time; {rate(gil['handoffs'], busy_s)} handoffs/s, ",
        f"{rate(gil['forced'], busy_s)} forced/s; ",
        f"{rate(gil['wanting_busy_mean'], 1.0)} threads wanted to run on average, and one could",
        f"; {turn} {at_most_three_digits(interval)}ms" if interval else "",
        f"; this leaves out the first {duration(alone_s)}, when there was one thread, which held "
        f"it for {share(alone_held_s, alone_s)} of that time"
        if alone_s >= seconds / 100
        else "",
    )


def _gil_name(gil: Gil) -> str:
    """As findings call it."""
    number = gil.get("gil", 0)
    return f"GIL {number}" if number else "GIL 0 (main interpreter)"


def _other_gils(report: Report, shown: Gil | None, few: int) -> list[RenderableType]:
    process = report["processes"][0] if report["processes"] else None
    # A free-threaded one has a GIL for moments.
    gils = process["gils"] if process and not process.get("not_recorded") else []
    gils = [gil for gil in gils if gil is not shown]
    lines: list[RenderableType] = [
        Text(f"  {_gil_name(gil)}: {_summary(gil, _seconds(report['processes'][0], report))}")
        for gil in gils[:few]
    ]
    if len(gils) > few:
        lines.append(Text(f"  and {len(gils) - few:,} more", style="dim"))
    return [Text(), Text("Other GILs of this process", style="bold"), *lines] if lines else []


def _other_processes(report: Report, few: int, width: int) -> list[RenderableType]:
    processes = report["processes"][1:]
    unlisted = report.get("other_processes") or OtherProcesses(processes=0, held_s=0, waited_s=0)
    if not processes and not unlisted["processes"]:
        return []
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=max(width // 3, 16))
    grid.add_column(overflow="fold")
    for process in processes[:few]:
        missing = process.get("not_recorded")
        if missing:
            text = _missing(process, missing)
        elif process["gils"]:
            text = Text(_summary_of_all(process, _seconds(process, report)))
        else:
            text = Text("never used its GIL", style="dim")
        grid.add_row(Text(f"  {process['pid']}"), Text(_command(process, report)), text)
    lines: list[RenderableType] = [Text(), Text("Other processes", style="bold"), grid]
    rest = processes[few:]
    count = len(rest) + unlisted["processes"]
    if count:
        waited = sum(_waited(gil) for process in rest for gil in process["gils"])
        waited += unlisted["waited_s"]
        lines.append(Text(f"  and {count:,} more, waited {duration(waited)}", style="dim"))
    return lines


def _last_words(report: Report) -> list[RenderableType]:
    lines: list[RenderableType] = [Text()]
    for process in report["processes"]:
        unrecorded = process.get("unrecorded_threads", 0)
        if unrecorded:
            text = f"note: {plural(unrecorded, 'thread')} of process {process['pid']} not recorded"
            lines.append(Text(text, style="yellow"))
    lines += [Text(f"note: {printable(note)}", style="yellow") for note in report.get("notes", [])]
    lines.append(lost_line(report))
    return lines


def _summary_of_all(process: Process, seconds: float) -> str:
    """Of the GIL whose threads held and waited most, and how many there are besides."""
    gils = sorted(process["gils"], key=lambda gil: gil["wanting_mean"], reverse=True)
    more = f"; {plural(len(gils) - 1, 'more GIL')}" if len(gils) > 1 else ""
    return _summary(gils[0], seconds) + more


def _summary(gil: Gil, seconds: float) -> str:
    return (
        f"{plural(_threads(gil), 'thread')}, held {share(gil['held_s'], seconds)}, "
        f"contended {share(gil['contended_s'], seconds)}, waited {duration(_waited(gil))}"
    )


def _seconds(process: Process, report: Report) -> float:
    """How long the process was recorded."""
    return process.get("duration_s", report["duration_s"])


def _threads(gil: Gil) -> int:
    return len(gil["threads"]) + _unlisted(gil)


def _unlisted(gil: Gil) -> int:
    others = gil.get("others")
    return others["threads"] if others else 0


def _waited(gil: Gil) -> float:
    others = gil.get("others")
    listed = sum(thread["waited_s"] for thread in gil["threads"])
    return listed + (others["waited_s"] if others else 0.0)


def _command(process: Process, report: Report) -> str:
    """The command line, without the folder of the program and cut where it gets boring."""
    argv, role = program(process, report["processes"])
    argv = [PurePath(argv[0]).name, *argv[1:]] if argv else ["?"]
    if role and argv[0].startswith("python") and argv[1:] and not argv[1].startswith("-"):
        argv = [PurePath(argv[1]).name, *argv[2:]]
    text = printable((f"{role} of " if role else "") + shlex.join(argv))
    return text if len(text) <= 60 else text[:59] + "…"
