"""The comparison on a screen: the answer first, then what changed by how much."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import ComparedFinding
from ungil.comparison.noise import Judged, Verdict
from ungil.comparison.runs import Run
from ungil.comparison.words import (
    VERDICTS,
    amount,
    answer,
    at_its_end,
    changed_by,
    conditions,
    matter,
    noise_of,
    now_for,
    told_status,
)
from ungil.console import print_page
from ungil.formatting import printable
from ungil.report.names import shortened

STYLES: dict[Verdict, str] = {
    "better": "bold green",
    "worse": "bold red",
    "more": "cyan",
    "less": "cyan",
    "within noise": "dim",
    "unknown": "dim yellow",
}
ROWS = 20
FINDINGS = 8
NARROW, WIDE = 20, 40
LEAST = 8
"""How much of a long name stays beside what follows it."""


def print_comparison(comparison: Comparison, file: TextIO) -> None:
    """Draw it on `file`, in colour if that is a terminal. OSError if it cannot be written."""
    print_page(file, lambda console: console.print(render(comparison, console)))


def render(comparison: Comparison, console: Console) -> RenderableType:
    """All of it, as wide as `console`."""
    parts: list[RenderableType] = [
        Text(answer(comparison), style="bold"),
        _side("before", comparison.before),
        _side("after", comparison.after),
    ]
    parts += [Text(f"warning: {printable(said)}", "yellow") for said in comparison.warnings]
    parts += [Text(noise_of(comparison), "dim"), Text()]
    parts += _table(comparison, console.width)
    parts += _findings(matter(comparison.findings))
    return Group(*parts)


def _side(name: str, runs: list[Run]) -> Text:
    text = Text(f"{name:8}", "bold")
    text.append(printable(conditions(runs)), "not bold dim")
    return text


def _table(comparison: Comparison, width: int) -> list[RenderableType]:
    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    drawn.add_column("\nthreads", no_wrap=True)
    for head in ("waited in 10 s\nbefore", "\nafter", "\nchange"):
        drawn.add_column(head, justify="right", no_wrap=True)
    drawn.add_column("\nverdict", no_wrap=True)
    drawn.add_column("\nand", overflow="fold")
    cells = WIDE if width >= 120 else NARROW
    gils = {gil.which: gil for gil in comparison.gils}
    _add(drawn, comparison.total, ("all threads", ""), cells)
    commands = comparison.commands or [None]
    shown = 0
    for command in commands:
        if command is not None:
            _add(drawn, command, (command.name, ""), cells, "bold")
        for row in comparison.groups:
            if command is not None and row.which.command != command.which.command:
                continue
            shown += 1
            if shown > ROWS:
                continue
            several = any(gil.command == row.which.command for gil in gils)
            of_gil = f" at GIL {row.which.gil}" if several else ""
            _add(drawn, row, (row.name, at_its_end(row) + of_gil), cells)
    lines: list[RenderableType] = [drawn]
    if shown > ROWS:
        more = f"and {shown - ROWS:,} more groups of threads, in the JSON and on the page"
        lines.append(Text(more, "dim"))
    return lines


def _add(drawn: Table, row: Row, named: tuple[str, str], cells: int, style: str = "") -> None:
    """A row with a name that may be shortened, and what follows it, which may not."""
    name, end = named
    waited = row.waited
    status = told_status(row.status)
    verdict = Text(status or VERDICTS[waited.verdict], "cyan" if status else STYLES[waited.verdict])
    drawn.add_row(
        Text(shortened(printable(name) or "(no name)", max(cells - len(end), LEAST)) + end, style),
        Text(amount(waited.metric, waited.before_median) if row.status != "new" else "-"),
        Text(amount(waited.metric, waited.after_median) if row.status != "gone" else "-"),
        Text(changed_by(waited) if not status else ""),
        verdict,
        _also(row) if not status else Text(),
    )


def _also(row: Row) -> Text:
    """What else changed by more than the noise."""
    text = Text()
    for judged in row.metrics.values():
        if judged is row.waited or not judged.changed:
            continue
        if text:
            text.append(", ")
        text.append(_change(judged), STYLES[judged.verdict].removeprefix("bold "))
    return text


def _change(judged: Judged) -> str:
    metric = judged.metric
    return (
        f"{metric.title} {amount(metric, judged.before_median)} →"
        f" {amount(metric, judged.after_median)}"
    )


def _findings(findings: list[ComparedFinding]) -> list[RenderableType]:
    if not findings:
        return []
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for finding in findings[:FINDINGS]:
        cost = finding.cost
        verdict = told_status(finding.status) or VERDICTS[cost.verdict]
        text = Text(f"cost {amount(cost.metric, cost.before_median)} →")
        text.append(f" {amount(cost.metric, cost.after_median)} in 10 s")
        text.append(f"; {VERDICTS[cost.verdict]}" if told_status(finding.status) else "")
        text.append(f"; {now}" if (now := now_for(finding)) else "")
        text.append(f"\n{printable(finding.text)}", "dim")
        grid.add_row(
            Text(verdict, STYLES[cost.verdict]), Text(printable(finding.subject.kind), "bold"), text
        )
    lines: list[RenderableType] = [Text(), Text("Findings", "bold"), grid]
    if len(findings) > FINDINGS:
        lines.append(Text(f"and {len(findings) - FINDINGS:,} more in the JSON", "dim"))
    return lines
