"""Writes docs/lab.html from the recorded run in docs/lab.json, and what docs/platforms.md has.

    python docs/lab_page.py

Nothing is measured. `ungil lab --json docs/lab.json` records another run.
"""

from __future__ import annotations

import re
from pathlib import Path

from ungil.lab.chart import Chart, Mark, Ranked, Row, Rows
from ungil.lab.experiments import load as experiments
from ungil.lab.files import write
from ungil.lab.page import page
from ungil.lab.results import load
from ungil.lab.units import SECONDS

HERE = Path(__file__).resolve().parent
RUN, PLATFORMS, PAGE = HERE / "lab.json", HERE / "platforms.md", HERE / "lab.html"
# A cell of the column of policies: how late a thread is on stock, and under the policy.
LATE = re.compile(r"([\d.]+) to ([\d.]+) ms, \d+ times less")
POLICY = 5
"""Its place among the cells of a row."""


def platforms(text: str) -> Chart:
    """How late a sleeping thread is on every interpreter that was tried on x86-64.

    Of an interpreter that was tried on more than one Debian, the newest one counts.
    """
    when = re.search(r"It ran on ([\d-]+)", text)
    rows: dict[str, Row] = {}
    debian = ""
    for line in text.splitlines():
        if line.startswith("## "):
            debian = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found = LATE.match(cells[POLICY]) if len(cells) > POLICY else None
        if found and "x86-64" in debian:
            stock, ungil = (float(it) / 1e3 for it in found.groups())
            name = cells[0].replace(", free-threaded, its GIL on", "t, GIL on")
            rows[name] = Row(name, [Mark(stock, "stock"), Mark(ungil, "ungil")])
    ordered = sorted(rows.values(), key=lambda row: _version(row.label))
    # Stock is first.
    less = [row.marks[0].value / row.marks[1].value for row in ordered]
    half = -(-len(ordered) // 2)
    day = f" of {when[1]}" if when else ""
    return Ranked(
        f"On {len(ordered)} interpreters, {ordered[0].label} to {ordered[-1].label}, a thread that"
        f" sleeps is {min(less):.0f} to {max(less):.0f} times less late under ungil",
        "How late it is after 2 ms of sleep, beside four threads that compute: the median, as they"
        f" are and under the policy interactive. Measured on the platforms{day}, not in this run.",
        [Rows("", ordered[:half]), Rows("", ordered[half:])],
        SECONDS,
        "log",
    )


def _version(label: str) -> tuple[tuple[int, ...], str]:
    return tuple(map(int, re.findall(r"\d+", label))), label


def written() -> str:
    """The page."""
    chart = platforms(PLATFORMS.read_text(encoding="utf-8"))
    return page(experiments(()), load(RUN), [chart])


if __name__ == "__main__":
    write(PAGE, written())
