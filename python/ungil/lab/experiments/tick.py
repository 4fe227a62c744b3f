"""tick: one long operation in C, and how long everything else stands still meanwhile.

The interpreter lets go of the GIL, and looks for signals, between its instructions only. An
operation that is a single instruction, however long, stops all other threads and Ctrl-C. No
scheduling can help; what ungil can do is name the line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial

from ungil.interpreters import Interpreter
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
from ungil.lab.figures import NOTHING, median, milliseconds, number
from ungil.lab.published import COUNTED, TICK_S
from ungil.lab.recording import recording
from ungil.lab.results import Results
from ungil.lab.workload import RunningWorkload, running, words_of

NAME = "tick"
N, N_QUICK = 100_000_000, 10_000_000
STOCK_NAME, POLICY, TRACE = "stock", "interactive", "ungil trace"
# For the operation to have begun.
BEFORE_SIGNAL_S = 0.05
LOOKED_AT_A_SECOND = 25e6


def _interrupted(program: RunningWorkload) -> Measured:
    """What a workload says that was interrupted in its operation."""
    program.says()
    time.sleep(BEFORE_SIGNAL_S)
    sent = time.time()
    program.interrupt()
    said = program.result()
    return {
        "tick_s": said["tick_s"],
        "computing_still_s": said["still_s"]["computing"],
        "sleeping_still_s": said["still_s"]["sleeping"],
        "to_interrupt_s": said["seen"] - sent,
    }


def _measure(interpreter: Interpreter, n: int, conditions: Conditions) -> Measured:
    conditions.check(interpreter)
    with running(words_of(interpreter, NAME, n), conditions) as program:
        return _interrupted(program)


def _trace(interpreter: Interpreter, n: int) -> Measured:
    """The same, and what `ungil trace` says of it."""
    words = words_of(interpreter, NAME, n)
    with recording(interpreter) as recorder:
        with running(words, extra=recorder.variables) as program:
            recorder.start()
            measured = _interrupted(program)
        process, report = recorder.stop()
    longest = max(
        (hold for gil in process["gils"] for hold in gil["long_holds"]),
        key=lambda hold: hold["duration_ms"],
        default=None,
    )
    return {
        **measured,
        "hold_s": longest and longest["duration_ms"] / 1e3,
        "line": longest and next(iter(longest["stack"]), None),
        "findings": [finding["text"] for finding in report["findings"]],
    }


def _plan(plan: Plan) -> Iterator[Cell]:
    n = N_QUICK if plan.quick else N
    for interpreter in plan.interpreters:
        variants = {
            STOCK_NAME: partial(_measure, interpreter, n, STOCK),
            POLICY: partial(_measure, interpreter, n, Conditions(POLICY)),
            TRACE: partial(_trace, interpreter, n),
        }
        for variant, measure in variants.items():
            yield Cell(NAME, interpreter, variant, measure, n / LOOKED_AT_A_SECOND + 0.2, {"n": n})


def figure(results: Results, python: str, variant: str, of: str) -> float | None:
    return median(results.rounds(python, variant), of)


def line_of(results: Results, python: str) -> str | None:
    """The line that `ungil trace` says it was; None if it has no stack, or was not measured."""
    for measured in results.rounds(python, TRACE):
        if measured["line"] is not None:
            # Without the folder, which every stack on this machine begins with.
            return re.sub(r"\([^()]*/", "(", measured["line"])
    return None


def _named(results: Results, python: str) -> str:
    """What `ungil trace` says it was, and for how long."""
    for measured in results.rounds(python, TRACE):
        line, hold = line_of(results, python), milliseconds(measured["hold_s"])
        return f"a hold of {hold}, no stack" if line is None else f"{line}: {hold}"
    return NOTHING


def _tables(results: Results) -> Sequence[Table]:
    then = f"Beazley 2009, {number(COUNTED)} numbers"
    rows = [Row((then, milliseconds(TICK_S), *[""] * 5), "published")]
    figures = ("tick_s", "computing_still_s", "sleeping_still_s", "to_interrupt_s")
    for python in results.pythons():
        rows.append(
            Row(
                (
                    python,
                    *(milliseconds(figure(results, python, STOCK_NAME, of)) for of in figures),
                    milliseconds(figure(results, python, POLICY, "computing_still_s")),
                    _named(results, python),
                )
            )
        )
    columns = (
        *("", "operation", "computing", "sleeping", "Ctrl-C took"),
        *(f"computing, ungil {POLICY}", "ungil trace names"),
    )
    return [Table(columns, rows, "for how long each stood still")]


EXPERIMENT = Experiment(
    name=NAME,
    title="One long operation",
    question=(
        "How long do other threads and Ctrl-C stand still while one operation in C takes its time?"
        " The main thread looks for something that is not in a range of n numbers; one thread"
        " computes, one sleeps for 1 ms at a time, and a SIGINT comes 50 ms after the beginning."
    ),
    source=Source("David Beazley", 2009, "talk: Inside the Python GIL"),
    published=(Figure("one tick: -1 in xrange(100000000)", TICK_S, "s"),),
    reading=(
        "A thread stands still as long as the operation takes, under every policy: nobody can end"
        " an operation of another thread. The trace tells which line it is."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
