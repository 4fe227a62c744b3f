"""The comparison on a screen: the answer first, then what changed by how much."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ungil.comparison.compared import Comparison
from ungil.comparison.findings import ComparedFinding
from ungil.comparison.rows import STYLES, draw_rows
from ungil.comparison.runs import Run
from ungil.comparison.words import (
    VERDICTS,
    amount,
    answer,
    conditions,
    matter,
    noise_of,
    now_for,
    told_status,
)
from ungil.console import print_page
from ungil.formatting import printable

FINDINGS = 8
LEAST_OF_A_GRID = 70
"""On a screen less wide, a finding stands below its verdict."""


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
    parts += draw_rows(comparison, console)
    parts += _findings(matter(comparison.findings), console.width)
    return Group(*parts)


def _side(name: str, runs: list[Run]) -> Text:
    text = Text(f"{name:8}", "bold")
    text.append(printable(conditions(runs)), "not bold dim")
    return text


def _findings(findings: list[ComparedFinding], width: int) -> list[RenderableType]:
    if not findings:
        return []
    stacked: list[RenderableType] = []
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
        heads = Text(verdict, STYLES[cost.verdict]), Text(printable(finding.subject.kind), "bold")
        if width < LEAST_OF_A_GRID:
            stacked += [Text(" ").join(heads), Padding(text, (0, 0, 0, 2))]
        else:
            grid.add_row(*heads, text)
    lines: list[RenderableType] = [Text(), Text("Findings", "bold"), *(stacked or [grid])]
    if len(findings) > FINDINGS:
        lines.append(Text(f"and {len(findings) - FINDINGS:,} more in the JSON", "dim"))
    return lines
