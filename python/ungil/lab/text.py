"""What came out, for a terminal: then, now, and with ungil."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from ungil.lab.chart import Kind
from ungil.lab.experiment import Experiment, Table
from ungil.lab.results import Results
from ungil.lab.runs import MOST_OTHERS

STYLES: dict[Kind, str] = {"published": "cyan", "stock": "", "ungil": "green"}
INDENT = (0, 0, 0, 2)
# More variants than these are not named one by one where they share a reason.
FEW = 3


def show(experiments: Sequence[Experiment], results: Results, console: Console) -> None:
    """Print every experiment that there are results of."""
    console.print(Text(_machine(results), style="dim"), soft_wrap=True)
    for experiment in experiments:
        of_it = results.of(experiment.name)
        if len(of_it):
            with console.capture() as capture:
                console.print()
                console.print(_experiment(experiment, of_it))
            # What rich fills lines up with would wrap where the window has become narrower.
            console.out(re.sub(r" +$", "", capture.get(), flags=re.MULTILINE), end="")


def _machine(results: Results) -> str:
    """What the figures are of."""
    machine = results.header.machine
    size = "small sizes (--quick), " if results.header.quick else ""
    return (
        f"{size}{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, "
        f"ungil {results.header.ungil}, {results.begun[:10]}"
    )


def _experiment(experiment: Experiment, results: Results) -> RenderableType:
    source = experiment.source
    parts: list[RenderableType] = [
        Text.assemble(
            (f"{experiment.name}: {experiment.title}", "bold"),
            (f"  ({source.author} {source.year}, {source.text})", "dim"),
        ),
        Padding(Text(experiment.question), INDENT),
    ]
    for table in experiment.tables(results):
        if table.title:
            parts.append(Padding(Text(f"\n{table.title}", style="bold"), INDENT))
        else:
            parts.append(Text())
        parts.append(Padding(_table(table), INDENT))
    parts.append(Padding(Text(f"\n{experiment.explained(results)}", style="italic"), INDENT))
    parts += [Padding(Text(note, style="yellow"), INDENT) for note in notes(results)]
    return Group(*parts)


def _table(table: Table) -> Drawn:
    drawn = Drawn(box=None, pad_edge=False, header_style="bold dim", padding=(0, 2, 0, 0))
    first, *others = table.columns
    drawn.add_column(first, no_wrap=True)
    for column in others:
        drawn.add_column(column, justify="right")
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row.cells), style=STYLES[row.kind])
    return drawn


def notes(results: Results) -> list[str]:
    """A sentence for each reason why something was not measured, or not well, and where."""
    where: dict[tuple[str, str], dict[str, list[str]]] = {}
    for result in results:
        if result.why is not None:
            variants = where.setdefault((result.status, result.why), {})
            of_it = variants.setdefault(result.python, [])
            if result.variant not in of_it:
                of_it.append(result.variant)
    found: list[str] = []
    for (status, why), variants in where.items():
        places = [
            f"{python} {', '.join(names)}".strip() if len(names) <= FEW else python
            for python, names in variants.items()
        ]
        found.append(
            f"{'not measured' if status == 'missing' else 'FAILED'}: {'; '.join(places)}: {why}"
        )
    disturbed = [
        cell for cell in results if cell.status == "measured" and cell.others > MOST_OTHERS
    ]
    if disturbed:
        found.append(
            f"{len(disturbed)} of {len(results)} cells were measured while others took more than"
            f" {MOST_OTHERS:.0%} of the machine: compare them with care"
        )
    return found
