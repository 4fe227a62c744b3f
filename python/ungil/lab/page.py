"""What came out, as one page: then, now, with ungil, and a chart that makes the point.

The page is a single file that needs no network and no script. It adapts to a phone and to the
dark, and each chart has its point in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from ungil.lab import charts
from ungil.lab.experiment import Chart, Experiment, Figure, Table
from ungil.lab.figures import number
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


def page(experiments: Sequence[Experiment], results: Results) -> str:
    """The page of all experiments that there are results of."""
    shown = [
        (experiment, of_it)
        for experiment in experiments
        if len(of_it := results.of(experiment.name))
    ]
    parts = [HEAD.format(css=CSS.read_text(encoding="utf-8"))]
    parts += _introduction([experiment for experiment, _ in shown], results)
    for experiment, of_it in shown:
        parts += _experiment(experiment, of_it)
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _introduction(experiments: Sequence[Experiment], results: Results) -> Iterator[str]:
    machine = results.header.machine
    yield "<header><h1>The GIL: then, now, and with ungil</h1>\n"
    yield (
        "<p>Published experiments about Python's global interpreter lock, run again. Grey is what"
        " was published, plain is today's interpreter as it is, green is the same interpreter with"
        " ungil.</p>\n"
    )
    size = ", small sizes (--quick)" if results.header.quick else ""
    yield (
        f'<p class="quiet">{escape(machine["cpu"])}, {machine["cores"]} cores,'
        f" {machine['memory_gb']} GB, {escape(machine['kernel'])}, {escape(machine['libc'])};"
        f" ungil {escape(results.header.ungil)}; {results.begun[:10]}{size}</p>\n"
    )
    yield '<nav aria-label="Experiments"><ul>'
    for experiment in experiments:
        yield f'<li><a href="#{experiment.name}">{experiment.name}</a></li>'
    yield "</ul></nav></header>\n"
    yield "<main>\n"
    used = {
        python for experiment in experiments for python in results.of(experiment.name).pythons()
    }
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


def _experiment(experiment: Experiment, results: Results) -> Iterator[str]:
    source = experiment.source
    yield f'<section id="{experiment.name}">\n<h2>{escape(experiment.title)}</h2>\n'
    yield (
        f'<p class="quiet">{escape(source.author)}, {source.year}, {escape(source.text)}</p>\n'
        f"<p>{escape(experiment.question)}</p>\n"
    )
    yield from _published(experiment.published)
    yield '<div class="charts">\n'
    for chart in experiment.charts(results):
        yield from _chart(chart)
    yield "</div>\n"
    for table in experiment.tables(results):
        if not table.is_picture:
            yield from _table(table)
    yield f"<p>{escape(experiment.explained(results))}</p>\n"
    for note in notes(results):
        yield f'<p class="quiet">{escape(note)}</p>\n'
    quick = " --quick" if results.header.quick else ""
    yield f"<p>Reproduce: <code>{escape(experiment.reproduce)}{quick}</code></p>\n</section>\n"


def _published(figures: Sequence[Figure]) -> Iterator[str]:
    if figures:
        yield '<ul class="then" aria-label="Published figures">'
        for figure in figures:
            value = f"{number(figure.value)} {figure.unit}".strip()
            yield f"<li>{escape(figure.what)}: <b>{escape(value)}</b></li>"
        yield "</ul>\n"


def _chart(chart: Chart) -> Iterator[str]:
    """A figure whose point is also in words, for everybody to read."""
    drawn = charts.svg(chart)
    if drawn:
        # What the drawing says is in the caption; a reader that reads aloud takes that.
        label = escape(f"{chart.title}. {chart.alternative}", quote=True)
        drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        caption = f"<b>{escape(chart.title)}</b> {escape(chart.alternative)}"
        yield f"<figure>\n<figcaption>{caption}</figcaption>\n{drawn}\n</figure>\n"


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"<h3>{escape(table.title)}</h3>\n"
    label = escape(table.title or "Results", quote=True)
    # It may be wider than a phone; then it scrolls, also by keyboard.
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table>\n'
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
