"""What came out, as one page: a summary first, then each experiment with its charts and tables.

The page is a single file that needs no network and no script. It adapts to a phone, to the dark and
to paper. Every title is made of the results, and each chart has its figures in a table, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from ungil.lab import drawing
from ungil.lab.chart import Chart, Ranked, Rows
from ungil.lab.drawing.marks import NAMES, kinds
from ungil.lab.experiment import Experiment, Figure, Table
from ungil.lab.figures import number
from ungil.lab.findings import Found, found
from ungil.lab.results import Results
from ungil.lab.text import notes

CSS = Path(__file__).with_name("page.css")

HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ungil lab: the GIL, then and now</title>
<style>
{css}</style>
</head>
<body>
"""


def page(
    experiments: Sequence[Experiment], results: Results, elsewhere: Sequence[Chart] = ()
) -> str:
    """The page of all experiments that there are results of.

    `elsewhere` are charts of what was not measured by the lab; they follow the summary.
    """
    shown = [
        (experiment, of_it, found(experiment.name, of_it))
        for experiment in experiments
        if len(of_it := results.of(experiment.name))
    ]
    parts = [HEAD.format(css=CSS.read_text(encoding="utf-8")), drawing.SYMBOLS, "\n"]
    parts += _introduction(results)
    parts.append("<main>\n")
    if shown:
        parts += _summary([(experiment, one) for experiment, _, one in shown])
    parts += (
        f"<section>\n{drawn}\n</section>\n" for drawn in map(drawing.figure, elsewhere) if drawn
    )
    for experiment, of_it, one in shown:
        parts += _experiment(experiment, of_it, one)
    parts += _interpreters([of_it for _, of_it, _ in shown], results)
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _introduction(results: Results) -> Iterator[str]:
    machine = results.header.machine
    yield "<header><h1>The GIL: then, now, and with ungil</h1>\n"
    yield (
        "<p>People have published measurements of Python's global interpreter lock since 2002."
        " Here they are, with the same experiments of today.</p>\n"
    )
    yield kinds(NAMES)
    size = ", small sizes (--quick)" if results.header.quick else ""
    yield (
        f'\n<p class="quiet">{escape(machine["cpu"])}, {machine["cores"]} cores,'
        f" {machine['memory_gb']} GB, {escape(machine['kernel'])}, {escape(machine['libc'])};"
        f" ungil {escape(results.header.ungil)}; {results.begun[:10]}{size}</p>\n"
    )
    if results.header.note:
        yield f"<details><summary>About this run</summary><p>{escape(results.header.note)}</p>"
        yield "</details>\n"
    yield "</header>\n"


def _summary(shown: Sequence[tuple[Experiment, Found]]) -> Iterator[str]:
    """An experiment a line: its finding, and then, now, with ungil as a small chart."""
    yield '<section id="summary">\n<h2>What came out</h2>\n<ol class="summary">\n'
    for experiment, one in shown:
        small = Ranked(one.measure, "", [Rows("", one.summary)], one.unit, one.scale)
        yield (
            f'<li><div><a href="#{experiment.name}">{_kept(one.title)}</a>'
            f'<p class="quiet">{escape(one.measure)}</p></div>'
            f"{drawing.panels(small)}</li>\n"
        )
    yield "</ol>\n</section>\n"


def _experiment(experiment: Experiment, results: Results, one: Found) -> Iterator[str]:
    source = experiment.source
    yield f'<section id="{experiment.name}">\n<h2>{_kept(one.title)}</h2>\n'
    yield (
        f'<p class="quiet">{escape(experiment.title)}: {escape(source.author)}, {source.year},'
        f" {escape(source.text)}</p>\n<p>{escape(experiment.question)}</p>\n"
    )
    for chart in one.charts:
        yield f"{drawing.figure(chart)}\n"
    yield f"<p>{escape(experiment.explained(results))}</p>\n"
    tables = [table for table in experiment.tables(results) if not table.is_picture]
    yield "<details><summary>The figures</summary>\n"
    yield from _published(experiment.published)
    for table in tables:
        yield from _table(table)
    yield "</details>\n"
    for note in notes(results):
        yield f'<p class="quiet">{escape(note)}</p>\n'
    quick = " --quick" if results.header.quick else ""
    yield f'<p class="quiet">Reproduce: <code>{escape(experiment.reproduce)}{quick}</code></p>\n'
    yield "</section>\n"


def _kept(sentence: str) -> str:
    """A sentence in which a figure and its unit stay on one line."""
    return re.sub(r"(?<=\d) (?=(?:ms|s|%|million)\b|%)", "&nbsp;", escape(sentence))


def _published(figures: Sequence[Figure]) -> Iterator[str]:
    if figures:
        yield '<ul class="then" aria-label="Published figures">'
        for figure in figures:
            value = f"{number(figure.value)} {figure.unit}".strip()
            yield f"<li>{escape(figure.what)}: <b>{escape(value)}</b></li>"
        yield "</ul>\n"


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"<h3>{escape(table.title)}</h3>\n"
    label = escape(table.title or "Results", quote=True)
    # It may be wider than a phone; then it scrolls, also by keyboard.
    yield f'<div class="scrolls" tabindex="0" role="region" aria-label="{label}"><table>\n'
    if any(table.columns):
        yield f"<thead><tr>{_cells('th scope=col', table.columns)}</tr></thead>\n"
    yield "<tbody>\n"
    for row in table.rows:
        first, *others = row.cells
        yield f'<tr class="{row.kind}"><th scope="row">{escape(first)}</th>'
        yield f"{_cells('td', others)}</tr>\n"
    yield "</tbody></table></div>\n"


def _cells(tag: str, cells: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(cell)}</{tag.split()[0]}>" for cell in cells)


def _interpreters(shown: Sequence[Results], results: Results) -> Iterator[str]:
    used = {python for of_it in shown for python in of_it.pythons()}
    if used:
        yield "<details><summary>Interpreters</summary><ul>"
        for name, one in results.interpreters.items():
            if name in used:
                yield f"<li>{escape(name)}: {escape(_interpreter(one))}</li>"
        yield "</ul></details>\n"


def _interpreter(one: dict[str, object]) -> str:
    """What it is, in words."""
    says = [f"{one.get('implementation')} {one.get('version')}"]
    says += ["a shared library" if one.get("shared") else "a static program"]
    says += ["without a GIL"] if one.get("free_threaded") else []
    says += ["a debug build"] if one.get("debug") else []
    return ", ".join(says)
