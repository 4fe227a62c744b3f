"""interrupt: from Ctrl-C to KeyboardInterrupt, or never; and what a pending signal costs.

Python handles signals in the main thread, between two instructions. Before 3.2 a main thread in
join() or in a lock never comes to another instruction; meanwhile the interpreter of 2.7 tries to
switch to it at every instruction of the other threads, not at every hundredth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ungil.interpreters import Interpreter
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import (
    Cell,
    CellFailed,
    Experiment,
    Measured,
    Plan,
    Row,
    Source,
    Table,
)
from ungil.lab.figures import NOTHING, milliseconds, number, ratio, times
from ungil.lab.recording import recording
from ungil.lab.results import Results
from ungil.lab.units import NEVER
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
RELEASES = "releases"
# From here on join() and locks can be interrupted, so that no signal stays pending.
DEAF_BEFORE = (3, 2)
# A figure, and the unit in which it is shown.
COUNTS, SWITCHES = ("counts_per_s", 1e6), ("switches_per_s", 1.0)
RELEASED, PER_COUNT = ("releases_per_s", 1.0), ("per_count", 1e-3)
# For the main thread to be in join().
IN_JOIN_S = 0.03
# When the computing threads have ended for certain.
AFTERWARDS_S = 0.2
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
    if where != "tick" and said["end"] <= sent:
        raise CellFailed("the threads had ended before Ctrl-C was sent: the machine is too busy")
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


def _releases(interpreter: Interpreter, seconds: float) -> Measured:
    """How often the computing threads let go of the GIL, without a signal and with one."""
    return {
        "before": _recorded(interpreter, seconds, seconds + AFTERWARDS_S),
        "pending": _recorded(interpreter, seconds, IN_JOIN_S),
    }


def _recorded(interpreter: Interpreter, seconds: float, signal_after_s: float) -> Measured:
    """With the main thread in join(), over the whole run; the signal comes after some time."""
    words = words_of(interpreter, NAME, "join", seconds)
    with recording(interpreter) as recorder:
        with running(words, extra=recorder.variables) as program:
            recorder.start()
            program.says()
            time.sleep(signal_after_s)
            program.interrupt()
            said = program.result()
        if said["caught"] < said["end"]:
            raise CellFailed("the main thread was interrupted before it was in join()")
        process, _ = recorder.stop()
    releases = sum(thread["holds"]["count"] for thread in process["gils"][0]["threads"])
    return {"releases_per_s": releases / seconds, "per_count": releases / said["samples"][-1][1]}


def _plan(plan: Plan) -> Iterator[Cell]:
    seconds = SECONDS_QUICK if plan.quick else SECONDS
    for interpreter in plan.interpreters:
        for variant, conditions in VARIANTS.items():
            for where in WHERE:
                measure = partial(_measure, interpreter, where, seconds, conditions)
                is_whole = where == "tick" or interpreter.number < DEAF_BEFORE
                about_s = seconds * (1 if is_whole else SENT_AT) + 0.1
                settings = {"seconds": seconds}
                yield Cell(NAME, interpreter, f"{variant}, {where}", measure, about_s, settings)
        if interpreter.number < DEAF_BEFORE:
            measure = partial(_releases, interpreter, seconds)
            yield Cell(NAME, interpreter, RELEASES, measure, 2 * seconds, {"seconds": seconds})


def taken_s(results: Results, python: str, variant: str, where: str) -> float | None:
    """How long it took, NEVER if it did not happen, None if that was not measured."""
    for measured in results.rounds(python, f"{variant}, {where}"):
        taken = measured["to_interrupt_s"]
        return NEVER if taken is None else taken
    return None


def _in_words(results: Results, python: str, variant: str, where: str) -> str:
    taken = taken_s(results, python, variant, where)
    return "never" if taken == NEVER else milliseconds(taken)


def _tables(results: Results) -> Sequence[Table]:
    rows: list[Row] = []
    for python in results.pythons():
        for variant in VARIANTS:
            cells = [_in_words(results, python, variant, where) for where in WHERE]
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
                if before and pending:
                    rows.append(
                        _change(f"{python} {where}: million counts/s", *_both(measured, COUNTS))
                    )
                    rows.append(
                        _change(f"{python} {where}: context switches/s", *_both(measured, SWITCHES))
                    )
        for measured in results.rounds(python, RELEASES):
            for what, of in (("second", RELEASED), ("1,000 counts", PER_COUNT)):
                both = _both(measured, of)
                rows.append(_change(f"{python} join: GIL releases per {what}, recorded", *both))
    columns = ("", "before", "while it is pending", "ratio")
    return Table(columns, rows, "what a signal that cannot be handled does to computing threads")


def _change(what: str, before: float, pending: float) -> Row:
    return Row((what, number(before), number(pending), times(ratio(pending, before))))


def _both(measured: Mapping[str, Any], of: tuple[str, float]) -> Iterator[float]:
    """A figure before the signal, and while it was pending."""
    name, unit = of
    return (measured[when][name] / unit for when in ("before", "pending"))


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
)
