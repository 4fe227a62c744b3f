"""The comparison as one page: it needs no network and no script, and says so to the browser.

What comes from traces (names, commands, files) is escaped, and set apart in its direction of
writing, so a name can neither execute nor reorder what stands beside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ungil.comparison.compared import Comparison, Row
from ungil.comparison.findings import ComparedFinding
from ungil.comparison.noise import Judged
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
from ungil.formatting import printable

CSS = Path(__file__).with_name("page.css")

# So many groups of threads have a table of their own; the JSON has all.
DETAILED = 200

HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{allowed}'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
"""


def html(comparison: Comparison) -> str:
    """The page."""
    return "".join(_page(comparison)).rstrip("\n")


def _page(comparison: Comparison) -> Iterator[str]:
    said = answer(comparison)
    css = CSS.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    yield HEAD.format(allowed=f"sha256-{digest}", title=escape(f"ungil diff: {said}"), css=css)
    yield f"<header><h1>{escape(said[:1].upper() + said[1:])}</h1>\n"
    yield '<dl class="quiet">\n'
    yield from _side("Before", comparison.before)
    yield from _side("After", comparison.after)
    yield "</dl>\n"
    for warning in comparison.warnings:
        yield f'<p class="warning">{_name(warning)}</p>\n'
    noise = noise_of(comparison)
    yield f'<p class="quiet">{escape(noise[:1].upper() + noise[1:])}. '
    yield "Times are per 10 s of a run, whatever its length.</p>\n</header>\n<main>\n"
    yield from _threads(comparison)
    yield from _findings(matter(comparison.findings))
    yield from _details(comparison)
    yield "</main>\n</body>\n</html>\n"


def _side(name: str, runs: Sequence[Run]) -> Iterator[str]:
    yield f"<dt>{name}</dt><dd>{_name(conditions(runs))}</dd>\n"


def _name(text: str) -> str:
    """What comes from a trace, for an element that isolates it."""
    return f'<bdi class="name">{escape(printable(text))}</bdi>'


def _threads(comparison: Comparison) -> Iterator[str]:
    yield "<section>\n<h2>Who waited</h2>\n"
    heads = ("threads", "waited before", "after", "change", "verdict", "what else changed")
    yield from _open_table("Who waited", heads)
    yield from _row(comparison.total, "all threads", "command")
    for command in comparison.commands or [None]:
        if command is not None:
            yield from _row(command, command.name, "command")
        for row in comparison.groups:
            if command is None or row.which.command == command.which.command:
                gil = f" at GIL {row.which.gil}" if comparison.gils and row.which.gil else ""
                yield from _row(row, row.name + at_its_end(row) + gil, "")
    yield "</tbody></table></div>\n</section>\n"


def _open_table(label: str, heads: Sequence[str]) -> Iterator[str]:
    # It may be wider than a phone; then it scrolls, also by keyboard.
    title = escape(printable(label), quote=True)
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{title}"><table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    yield "</tr></thead>\n<tbody>\n"


def _row(row: Row, name: str, kind: str) -> Iterator[str]:
    waited = row.waited
    status = told_status(row.status)
    before = "-" if row.status == "new" else amount(waited.metric, waited.before_median)
    after = "-" if row.status == "gone" else amount(waited.metric, waited.after_median)
    also = "" if status else ", ".join(_also(row))
    yield f'<tr class="{kind}"><th scope="row">{_name(name or "(no name)")}</th>'
    yield f"<td>{before}</td><td>{after}</td>"
    # On a phone the verdict is off the screen, and the colour of the change stands for it.
    css = status or _css(waited)
    yield f'<td class="{css}">{"" if status else escape(changed_by(waited))}</td>'
    yield f'<td class="{css}">{status or VERDICTS[waited.verdict]}</td>'
    yield f'<td class="words">{also}</td></tr>\n'


def _also(row: Row) -> Iterator[str]:
    for judged in row.metrics.values():
        if judged is not row.waited and judged.changed:
            metric = judged.metric
            change = (
                f"{amount(metric, judged.before_median)} → {amount(metric, judged.after_median)}"
            )
            yield f'<span class="{_css(judged)}">{escape(metric.title)} {change}</span>'


def _css(judged: Judged) -> str:
    return judged.verdict.partition(" ")[0]


def _findings(findings: Sequence[ComparedFinding]) -> Iterator[str]:
    if not findings:
        return
    yield "<section>\n<h2>Findings</h2>\n<ol>\n"
    for finding in findings:
        cost = finding.cost
        status = told_status(finding.status)
        verdict = VERDICTS[cost.verdict]
        yield f'<li><b>{escape(printable(finding.subject.kind))}</b> <span class="{_css(cost)}">'
        yield f"{status + ', ' if status else ''}{verdict}</span>: cost"
        yield f" {amount(cost.metric, cost.before_median)} before,"
        yield f" {amount(cost.metric, cost.after_median)} after"
        if now := now_for(finding):
            yield f"; {_name(now)}"
        yield f'<br><span class="quiet">{_name(finding.text)}</span></li>\n'
    yield "</ol>\n</section>\n"


def detailed(comparison: Comparison) -> list[tuple[str, Row]]:
    """The rows that have a table of all numbers, each with a name that no other one has."""
    of_command = {row.which.command: f" of {row.name}" for row in comparison.commands}
    several = {row.which.command for row in comparison.gils}

    def of(row: Row) -> str:
        return of_command.get(row.which.command, "")

    rows = [("all threads", comparison.total)]
    rows += [(row.name + of(row), row) for row in comparison.gils]
    for row in comparison.groups:
        at_gil = f" at GIL {row.which.gil}" if row.which.command in several else ""
        rows.append((f"{row.name or '(no name)'}{at_its_end(row)}{at_gil}{of(row)}", row))
    return rows


def _details(comparison: Comparison) -> Iterator[str]:
    yield "<section>\n<h2>All numbers</h2>\n"
    rows = detailed(comparison)
    for name, row in rows[:DETAILED]:
        yield f"<details><summary>{_name(name)}</summary>\n"
        heads = ("", "before", "after", "difference", "noise", "verdict", "runs before", "after")
        yield from _open_table(name, heads)
        for judged in row.metrics.values():
            yield from _numbers(judged)
        yield "</tbody></table></div></details>\n"
    if len(rows) > DETAILED:
        left = f"{len(rows) - DETAILED:,} more groups of threads are in the JSON."
        yield f'<p class="quiet">{left}</p>\n'
    yield "</section>\n"


def _numbers(judged: Judged) -> Iterator[str]:
    metric = judged.metric

    def runs(values: Sequence[float | None]) -> str:
        return escape(", ".join(amount(metric, value) for value in values))

    difference = judged.difference
    change = amount(metric, None if difference is None else abs(difference))
    sign = "" if not difference else "+" if difference > 0 else "-"
    yield f'<tr><th scope="row">{escape(metric.title)}</th>'
    yield f"<td>{amount(metric, judged.before_median)}</td>"
    yield f"<td>{amount(metric, judged.after_median)}</td>"
    yield f"<td>{sign}{change}</td><td>{amount(metric, judged.noise)}</td>"
    yield f'<td class="{_css(judged)}">{VERDICTS[judged.verdict]}</td>'
    yield f'<td class="words">{runs(judged.before)}</td>'
    yield f'<td class="words">{runs(judged.after)}</td></tr>\n'
