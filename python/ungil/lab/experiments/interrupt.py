"""interrupt: from Ctrl-C to KeyboardInterrupt, or never; and what a pending signal costs.

Python handles signals in the main thread, between two instructions. Before 3.2 a main thread in
join() or in a lock never comes to another instruction; meanwhile the interpreter of 2.7 tries to
switch to it at every instruction of the other threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import (
    Cell,
    Chart,
    Experiment,
    Measured,
    Plan,
    Row,
    Series,
    Source,
    Table,
)
from ungil.lab.figures import NOTHING, milliseconds, number, ratio, times, whole
from ungil.lab.interpreters import Interpreter
from ungil.lab.results import Results
from ungil.lab.workload import running, words_of

NAME = "interrupt"
WHERE: Mapping[str, str] = {
    "join": "join",
    "lock": "a lock",
    "tick": "a long tick",
    "compute": "computing",
}
VARIANTS: Mapping[str, Conditions] = {"stock": STOCK, "interactive": Conditions("interactive")}
SECONDS, SECONDS_QUICK = 4.0, 0.7
# Of the workload's seconds, before the signal is sent.
SENT_AT = 0.4


def _measure(
    interpreter: Interpreter, where: str, seconds: float, conditions: Conditions
) -> Measured:
    conditions.check(interpreter)
    with running(words_of(interpreter, NAME, where, seconds), conditions) as program:
        program.says()
        time.sleep(seconds * SENT_AT)
        sent = time.time()
        program.interrupt()
        said = program.result()
    # A tick ends by itself, and so does not count as one that only the end of all has ended.
    never = where != "tick" and said["caught"] >= said["end"]
    before, after = (
        _rates([sample for sample in said["samples"] if (sample[0] < sent) is early])
        for early in (True, False)
    )
    return {
        "to_interrupt_s": None if never else said["caught"] - sent,
        "waited_s": said["caught"] - sent,
        "before": before,
        "pending": after if never else None,
    }


def _rates(samples: Sequence[Sequence[float]]) -> dict[str, float] | None:
    """Counts and context switches a second between the first of the samples and the last."""
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    (begin, counted, switched), (end, counted_after, switched_after) = samples[0], samples[-1]
    return {
        "counts_per_s": (counted_after - counted) / (end - begin),
        "switches_per_s": (switched_after - switched) / (end - begin),
    }


def _plan(plan: Plan) -> Iterator[Cell]:
    seconds = SECONDS_QUICK if plan.quick else SECONDS
    for interpreter in plan.interpreters:
        for variant, conditions in VARIANTS.items():
            for where in WHERE:
                measure = partial(_measure, interpreter, where, seconds, conditions)
                yield Cell(
                    NAME,
                    interpreter,
                    f"{variant}, {where}",
                    measure,
                    seconds * (1 if where == "tick" or interpreter.number < (3, 2) else SENT_AT)
                    + 0.1,
                    {"seconds": seconds},
                )


def _in_words(rounds: Sequence[Mapping[str, Any]]) -> str:
    """How long it took, or that it did not happen."""
    for measured in rounds:
        taken = measured["to_interrupt_s"]
        return "never" if taken is None else milliseconds(taken)
    return NOTHING


def _tables(results: Results) -> Sequence[Table]:
    rows: list[Row] = []
    for python in results.pythons():
        for variant in VARIANTS:
            cells = [_in_words(results.rounds(python, f"{variant}, {where}")) for where in WHERE]
            if any(cell != NOTHING for cell in cells):
                stock = variant == "stock"
                label = python if stock else f"{python} ungil {variant}"
                rows.append(Row((label, *cells), "stock" if stock else "ungil"))
    columns = ("main thread in", *WHERE.values())
    pending = _pending(results)
    return [Table(columns, rows), *([pending] if pending.rows else [])]


def _pending(results: Results) -> Table:
    """What a signal does that cannot be handled, where there was one."""
    rows: list[Row] = []
    for python in results.pythons():
        for where in WHERE:
            for measured in results.rounds(python, f"stock, {where}"):
                before, pending = measured["before"], measured["pending"]
                if not before or not pending:
                    continue
                rows.append(
                    Row(
                        (
                            f"{python} {where}",
                            *(whole(it["switches_per_s"]) for it in (before, pending)),
                            *(number(it["counts_per_s"] / 1e6) for it in (before, pending)),
                            times(ratio(pending["counts_per_s"], before["counts_per_s"])),
                        )
                    )
                )
    columns = (
        *("", "context switches/s before", "while it is pending"),
        *("million counts/s before", "while it is pending", "ratio"),
    )
    return Table(columns, rows, "what a pending signal does to the computing threads")


def _charts(results: Results) -> Sequence[Chart]:
    pythons = results.pythons()
    series: list[Series] = []
    for where, name in WHERE.items():
        taken: list[float | None] = []
        for python in pythons:
            rounds = results.rounds(python, f"stock, {where}")
            taken.append(rounds[0]["to_interrupt_s"] if rounds else None)
        series.append(Series(f"main thread in {name}", pythons, taken))
    never = [
        f"{python} in {name}"
        for python in pythons
        for where, name in WHERE.items()
        if _in_words(results.rounds(python, f"stock, {where}")) == "never"
    ]
    return [
        Chart(
            "bars",
            "From Ctrl-C to KeyboardInterrupt",
            f"Never: {', '.join(never) or 'nowhere'}. Elsewhere the bars tell how long it took.",
            y_label="s",
            series=series,
            log_y=True,
        )
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="Deaf to Ctrl-C",
    question=(
        "How long does Ctrl-C take if the main thread waits in join(), for a lock, in one long"
        " operation, or computes, beside two computing threads? And what does a signal that nobody"
        " can handle do to these?"
    ),
    source=Source("David Beazley", 2009, "talk: Inside the Python GIL"),
    published=(),
    reading=(
        "Never: KeyboardInterrupt came only when the computing threads had ended and with them what"
        " the main thread waited for. A long tick is over when it is over."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
    charts=_charts,
)
