"""fairness: how evenly threads take turns, measured as Tim Peters did in 2002.

He looked at the gaps: a thread that loops notes how long it was since its last turn. The longest
ones are to be read with care, as he said, for some are the kernel's, which takes a whole process
off its cores. The workload tells which by looking at what the other threads did meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ungil.interpreters import Interpreter
from ungil.lab.chart import Kind
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import (
    Cell,
    Experiment,
    Figure,
    Measured,
    Plan,
    Row,
    Source,
    Table,
)
from ungil.lab.figures import NOTHING, count, jain, number
from ungil.lab.published import PETERS, Gaps
from ungil.lab.results import Results
from ungil.lab.workload import run

NAME = "fairness"
VARIANTS: Mapping[str, Conditions] = {
    "stock": STOCK,
    "interactive": Conditions("interactive"),
    "fair": Conditions("fair"),
}
MOST = 7
SPAN_S, SPAN_QUICK_S = 2.0, 0.1
SHOWN = (2, 4, 7)
# A gap of which the kernel had at least this share is the kernel's.
MOSTLY = 0.5

Looper = Mapping[str, Any]
"""A row of his table."""


def _measure(interpreter: Interpreter, span_s: float, conditions: Conditions) -> Measured:
    return run(interpreter, NAME, span_s, MOST, conditions=conditions)


def _plan(plan: Plan) -> Iterator[Cell]:
    span_s = SPAN_QUICK_S if plan.quick else SPAN_S
    for interpreter in plan.interpreters:
        for variant, conditions in VARIANTS.items():
            measure = partial(_measure, interpreter, span_s, conditions)
            settings = {"span_s": span_s, "most": MOST}
            yield Cell(NAME, interpreter, variant, measure, MOST * span_s + 0.1, settings)


def _loopers(results: Results, python: str, variant: str, threads: int) -> Sequence[Looper]:
    """The rows of his table for so many threads; none if that was not measured."""
    for measured in results.rounds(python, variant):
        return measured["threads"][threads - 1] if "threads" in measured else ()
    return ()


def _is_kernels(looper: Looper) -> bool:
    """Whether the longest gap of a thread is one in which nobody ran."""
    return looper.get("silent_ms", 0.0) >= MOSTLY * looper["max_gap_ms"]


class Digest(NamedTuple):
    """What matters of so many threads."""

    longest_ms: float
    """The longest gap of any thread."""
    is_kernels: bool | None
    jain: float | None
    """Jain's index of their turns. Like whose the gap was it is None if the file does not say."""


def digest(results: Results, python: str, variant: str, threads: int) -> Digest | None:
    """Of so many threads; None if that was not measured."""
    if loopers := _loopers(results, python, variant, threads):
        worst = max(loopers, key=lambda looper: looper["max_gap_ms"])
        turns = jain(looper["turns"] for looper in loopers)
        return Digest(worst["max_gap_ms"], _is_kernels(worst), turns)
    for measured in results.rounds(python, variant):
        # A file that was read back from a page has no more than that page had.
        known = measured.get("digests", {}).get(str(threads))
        return Digest(**known) if known else None
    return None


def _kernels(results: Results, python: str, variant: str) -> str:
    """Of how many threads the longest gap was the kernel's."""
    every = [it for n in range(2, MOST + 1) for it in _loopers(results, python, variant, n)]
    for measured in results.rounds(python, variant):
        if "digests" in measured:
            return f"{measured['kernels']} of {measured['loopers']}"
    return f"{sum(map(_is_kernels, every))} of {len(every)}"


def _gap(it: Digest | None) -> str:
    """The longest gap, and whose it is."""
    if it is None:
        return NOTHING
    return f"{number(it.longest_ms)} {'kernel' if it.is_kernels else 'GIL'}"


def _index(it: Digest | None) -> str:
    return NOTHING if it is None or it.jain is None else f"{it.jain:.3f}"


def _tables(results: Results) -> Sequence[Table]:
    pythons = results.pythons()
    return [
        _overview(results, pythons),
        *(_his(results, python) for python in pythons[-1:]),
        _published(),
    ]


def of_peters(threads: int) -> Sequence[Gaps]:
    return [row for row in PETERS if row.threads == threads]


def _published() -> Table:
    """His table, in his layout."""
    rows = [
        Row(
            (
                str(it.threads) if it.tid == 0 else "",
                str(it.tid),
                f"{it.mean_ms:.2f}",
                f"{it.longest_ms:.2f}",
                f"{count(it.at)} of {count(it.turns)}",
            ),
            "published",
        )
        for it in PETERS
    ]
    columns = ("threads", "tid", "mean gap ms", "max gap ms", "at turn")
    return Table(columns, rows, "Peters 2002: one second on Windows 98SE")


def _overview(results: Results, pythons: Sequence[str]) -> Table:
    then = {n: of_peters(n) for n in SHOWN}
    rows = [
        Row(
            (
                "Peters 2002",
                *(number(max(it.longest_ms for it in then[n])) for n in SHOWN),
                "",
                *(f"{jain(it.turns for it in then[n]):.3f}" for n in SHOWN),
            ),
            "published",
        )
    ]
    for python in pythons:
        for variant in VARIANTS:
            of = [digest(results, python, variant, n) for n in SHOWN]
            if of[-1] is None:
                continue
            kind: Kind = "stock" if variant == "stock" else "ungil"
            rows.append(
                Row(
                    (
                        f"{python} {'' if kind == 'stock' else 'ungil '}{variant}",
                        *map(_gap, of),
                        _kernels(results, python, variant),
                        *map(_index, of),
                    ),
                    kind,
                )
            )
    columns = (
        "",
        *(f"{n} threads" for n in SHOWN),
        "kernel's",
        *(f"Jain, {n} thr." for n in SHOWN),
    )
    return Table(columns, rows, "longest gap in ms, and whose it was; Jain's index")


def _his(results: Results, python: str) -> Table:
    """His table for the most threads on one interpreter, and beside it under `fair`."""
    rows: list[Row] = []
    for variant, kind in (("stock", "stock"), ("fair", "ungil")):
        rows += [
            Row(
                (
                    variant,
                    str(looper["tid"]),
                    f"{looper['mean_gap_ms']:.5f}",
                    number(looper["max_gap_ms"]),
                    f"{count(looper['at_turn'])} of {count(looper['turns'])}",
                    "kernel" if _is_kernels(looper) else "GIL",
                ),
                "ungil" if kind == "ungil" else "stock",
            )
            for looper in _loopers(results, python, variant, MOST)
        ]
    columns = ("", "tid", "mean gap ms", "max gap ms", "at turn", "which is the")
    return Table(columns, rows, f"his table, {MOST} threads on {python}")


EXPERIMENT = Experiment(
    name=NAME,
    title="Fairness of threads that only compute",
    question=(
        "If several threads do the same, does each get its turns? Each loops for a while and notes"
        " the gap between its turns: on average, and the longest."
    ),
    source=Source("Tim Peters", 2002, "python-list: Threading unfairness, 18 May"),
    published=(
        Figure("longest gap of a thread that is alone", PETERS[0].longest_ms, "ms"),
        Figure("of 7 threads", max(it.longest_ms for it in of_peters(7)), "ms"),
        Figure("mean gap of 7 threads", PETERS[-1].mean_ms, "ms"),
    ),
    reading=(
        "Of n threads each should wait n - 1 switch intervals of 5 ms at most. Jain's index of the"
        " turns is 1 if all had as many, 1/n if one had all. A gap in which no thread ran is the"
        " kernel's."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
