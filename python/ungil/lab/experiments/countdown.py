"""countdown: the same counting twice, one after the other and in two threads.

Two threads of pure Python cannot be faster than one after the other. The text showed that they
were much slower, and less so on one core than on two; and how many system calls that took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ungil.interpreters import Interpreter
from ungil.lab import system_calls
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
from ungil.lab.figures import count, median, ratio, seconds, times
from ungil.lab.published import CALLS, COUNTDOWN, COUNTED, Calls
from ungil.lab.results import Results
from ungil.lab.workload import run, words_of

NAME = "countdown"
POLICIES = ("interactive", "fair", "batch")
SEQUENCE, THREADS, ONE_CORE = "in sequence", "two threads", "on one core"
CALLS_SEQUENCE, CALLS_THREADS = "system calls in sequence", "system calls in two threads"

N, ROUNDS = 30_000_000, 3
N_QUICK, ROUNDS_QUICK = 3_000_000, 2
# Under strace, where a system call takes a hundred times as long.
N_CALLS, N_CALLS_QUICK = 3_000_000, 300_000
COUNTED_A_SECOND = 15e6


def _measure(
    interpreter: Interpreter, n: int, how: str, conditions: Conditions = STOCK
) -> Measured:
    return run(interpreter, "countdown", n, how, conditions=conditions)


def _calls(interpreter: Interpreter, n: int, how: str) -> Measured:
    _, calls = system_calls.count(words_of(interpreter, "countdown", n, how))
    return {"calls": sum(calls.values()), "futex": calls.get("futex", 0)}


def _plan(plan: Plan) -> Iterator[Cell]:
    n = N_QUICK if plan.quick else N
    for interpreter in plan.interpreters:
        variants = {
            SEQUENCE: partial(_measure, interpreter, n, "sequence"),
            THREADS: partial(_measure, interpreter, n, "threads"),
            ONE_CORE: partial(_measure, interpreter, n, "threads", STOCK.on(1)),
            **{
                policy: partial(_measure, interpreter, n, "threads", Conditions(policy))
                for policy in POLICIES
            },
        }
        for round_ in range(1, (ROUNDS_QUICK if plan.quick else ROUNDS) + 1):
            for variant, measure in variants.items():
                about_s = 2 * n / COUNTED_A_SECOND
                settings = {"n": n}
                yield Cell(NAME, interpreter, variant, measure, about_s, settings, round_)
        few = N_CALLS_QUICK if plan.quick else N_CALLS
        for variant, how in ((CALLS_SEQUENCE, "sequence"), (CALLS_THREADS, "threads")):
            measure = partial(_calls, interpreter, few, how)
            yield Cell(NAME, interpreter, variant, measure, 1.0, {"n": few})


def _wall_s(results: Results, python: str, variant: str) -> float | None:
    return median(results.rounds(python, variant), "wall_s")


def slowdown(results: Results, python: str, variant: str) -> float | None:
    """As a multiple of the time in sequence."""
    return ratio(_wall_s(results, python, variant), _wall_s(results, python, SEQUENCE))


def _switches(results: Results, python: str, variant: str) -> float | None:
    """Context switches a second."""
    return median(
        results.rounds(python, variant),
        lambda it: (it["voluntary_switches"] + it["involuntary_switches"]) / it["wall_s"],
    )


def _tables(results: Results) -> Sequence[Table]:
    return [_times(results), _costs(results)]


def _times(results: Results) -> Table:
    then = [times(COUNTDOWN[it] / COUNTDOWN[SEQUENCE]) for it in (THREADS, ONE_CORE)]
    label = f"Beazley 2009, n = {count(COUNTED)}"
    rows = [Row((label, seconds(COUNTDOWN[SEQUENCE]), *then, "", "", ""), "published")]
    for python in results.pythons():
        rows.append(
            Row(
                (
                    python,
                    seconds(_wall_s(results, python, SEQUENCE)),
                    *(times(slowdown(results, python, it)) for it in (THREADS, ONE_CORE)),
                    *(times(slowdown(results, python, policy)) for policy in POLICIES),
                )
            )
        )
    names = tuple(f"ungil {policy}" for policy in POLICIES)
    n = next((cell.settings["n"] for cell in results if cell.variant == SEQUENCE), None)
    return Table(("", SEQUENCE, THREADS, ONE_CORE, *names), rows, f"now n = {count(n)}")


def _costs(results: Results) -> Table:
    rows = [
        Row(
            (f"Beazley 2009, {it.system}", count(it.sequence), _in_threads(it), "", ""), "published"
        )
        for it in CALLS
    ]
    for python in results.pythons():
        calls = [
            median(results.rounds(python, it), "calls") for it in (CALLS_SEQUENCE, CALLS_THREADS)
        ]
        switches = [_switches(results, python, it) for it in (SEQUENCE, THREADS)]
        rows.append(Row((python, *map(count, calls), *map(count, switches))))
    columns = (
        *("", "system calls in sequence", "in two threads"),
        *("context switches/s in sequence", "in two threads"),
    )
    return Table(columns, rows, "what it takes")


def _in_threads(calls: Calls) -> str:
    if calls.two_cores == calls.threads:
        return count(calls.threads)
    return f"{count(calls.threads)}; on two cores {count(calls.two_cores)}"


EXPERIMENT = Experiment(
    name=NAME,
    title="Counting down in two threads",
    question=(
        "How much longer does a program of pure computation take in two threads than without"
        " threads? It counts down from n twice, in sequence, in two threads, and in two threads"
        " that have one core."
    ),
    source=Source("David Beazley", 2009, "talk: Inside the Python GIL"),
    published=(
        Figure("in sequence, n = 100,000,000", COUNTDOWN[SEQUENCE], "s"),
        Figure("in two threads, two cores", COUNTDOWN[THREADS], "s"),
        Figure("in two threads, one core", COUNTDOWN[ONE_CORE], "s"),
        *(
            Figure(f"system calls {how}, {it.system}", calls, "")
            for it in CALLS
            for how, calls in (
                ("in sequence", it.sequence),
                ("in two threads", it.threads),
                ("in two threads on two cores", it.two_cores),
            )
        ),
    ),
    reading="1x is as fast as no threads at all; what is above is the price of sharing the GIL.",
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
