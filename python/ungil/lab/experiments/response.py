"""response: how long a thread that answers takes beside threads that compute.

It lets go of the GIL whenever it waits for a request, and has to get it back from the computing
threads for every answer: the convoy. The peer that everybody has is a shorter switch interval, so
it is measured, too.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

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
from ungil.lab.figures import NOTHING, count, number, ratio, times
from ungil.lab.published import ECHO_A_SECOND, ECHO_THREADS, SWITCH_INTERVAL_S
from ungil.lab.results import Results
from ungil.lab.workload import FOLDER, running, words_of

NAME = "response"


@dataclass(frozen=True)
class Variant:
    """One way to schedule the GIL."""

    conditions: Conditions = STOCK
    interval_s: float | None = None
    """The switch interval, if not CPython's own."""


VARIANTS: Mapping[str, Variant] = {
    "stock": Variant(),
    "interval 50 us": Variant(interval_s=5e-5),
    "interactive": Variant(Conditions("interactive")),
    "fair": Variant(Conditions("fair")),
    "batch": Variant(Conditions("batch")),
    # Those that compute have the names that threading gives.
    "priority": Variant(Conditions("priority", levels=("Thread-*=low",))),
}
THREADS = tuple(range(9))
THREADS_QUICK = (0, 8)
# Answers take long under batch, and a quick run waits for all of them.
VARIANTS_QUICK = ("stock", "interval 50 us", "interactive", "fair")
RATE = 100.0
SECONDS, SECONDS_QUICK = 2.0, 0.2


def _measure(interpreter: Interpreter, variant: Variant, threads: int, seconds: float) -> Measured:
    variant.conditions.check(interpreter)
    arguments: list[object] = [threads]
    if variant.interval_s is not None:
        arguments.append(variant.interval_s)
    with running(words_of(interpreter, NAME, *arguments), variant.conditions) as server:
        port = server.says()["port"]
        words = [sys.executable, FOLDER / "response_client.py", port, RATE, seconds]
        with running(words) as client:
            answered = client.result()
        work = server.result()
    taken = sorted(answered["taken_ms"])
    return {
        "p50_ms": statistics.median(taken),
        "p99_ms": taken[max(0, -(-99 * len(taken) // 100) - 1)],
        "max_ms": taken[-1],
        "requests": len(taken),
        "unsent": answered["unsent"],
        "rounds_per_s": work["rounds"] / work["wall_s"],
        "rounds_per_cpu_s": ratio(work["rounds"], work["cpu_s"]),
    }


def _has_interval(interpreter: Interpreter) -> bool:
    """Whether it has a switch interval: the GIL of before 3.2, and none, have not."""
    return interpreter.number >= (3, 2) and interpreter.implementation == "CPython"


def _plan(plan: Plan) -> Iterator[Cell]:
    seconds = SECONDS_QUICK if plan.quick else SECONDS
    for interpreter in plan.interpreters:
        for threads in THREADS_QUICK if plan.quick else THREADS:
            for name in VARIANTS_QUICK if plan.quick else VARIANTS:
                variant = VARIANTS[name]
                if variant.interval_s is not None and not _has_interval(interpreter):
                    continue
                measure = partial(_measure, interpreter, variant, threads, seconds)
                settings = {"seconds": seconds, "rate": RATE}
                yield Cell(
                    NAME, interpreter, f"{name}, {threads}", measure, seconds + 0.2, settings
                )


def figure(results: Results, python: str, name: str, threads: int, of: str) -> float | None:
    for measured in results.rounds(python, f"{name}, {threads}"):
        return measured.get(of)
    return None


def thread_counts(results: Results) -> list[int]:
    """The numbers of computing threads that were measured."""
    return sorted({int(cell.variant.rpartition(", ")[2]) for cell in results})


def kind_of(name: str) -> Kind:
    return "stock" if VARIANTS[name].conditions.policy is None else "ungil"


def _tables(results: Results) -> Sequence[Table]:
    counts = thread_counts(results)
    if not counts:
        return [_published()]
    shown = [n for n in (0, 1, 2, 4, 8) if n in counts]
    rows: list[Row] = []
    for python in results.pythons():
        for name in VARIANTS:
            if figure(results, python, name, counts[-1], "p50_ms") is None:
                continue
            work = [
                figure(results, python, it, counts[-1], "rounds_per_s") for it in (name, "stock")
            ]
            ours = kind_of(name) == "ungil"
            rows.append(
                Row(
                    (
                        f"{python} {'ungil ' if ours else ''}{name}",
                        *(_both(results, python, name, n) for n in shown),
                        times(ratio(*work)) if name != "stock" else "1x",
                    ),
                    kind_of(name),
                )
            )
    columns = ("", *(f"{n} threads" for n in shown), f"work, {counts[-1]} threads")
    return [
        Table(columns, rows, "response time in ms: median / 99th percentile"),
        _published(),
    ]


def then_s(threads: int) -> float | None:
    """What a request took in 2021 beside so many threads; None if that was not published."""
    if threads not in ECHO_THREADS:
        return None
    return 1 / ECHO_A_SECOND[SWITCH_INTERVAL_S][ECHO_THREADS.index(threads)]


def _published() -> Table:
    """The table of 2021, in its layout."""
    rows = [
        Row((f"{interval_s * 1e3:g} ms", *map(count, a_second)), "published")
        for interval_s, a_second in ECHO_A_SECOND.items()
    ]
    columns = ("switch interval", *(f"{n} threads" for n in ECHO_THREADS))
    return Table(columns, rows, "Skvortsov 2021: echoes a second beside computing threads")


def _both(results: Results, python: str, name: str, threads: int) -> str:
    p50, p99 = (figure(results, python, name, threads, of) for of in ("p50_ms", "p99_ms"))
    return NOTHING if p50 is None else f"{number(p50, 2)} / {number(p99, 2)}"


EXPERIMENT = Experiment(
    name=NAME,
    title="Answering beside computing threads",
    question=(
        "How long does a thread take to answer while others compute? A client in a process of its"
        " own sends 100 datagrams a second and counts from when each was due."
    ),
    source=Source("David Beazley", 2009, "talk: Inside the Python GIL"),
    published=tuple(
        Figure(f"Skvortsov 2021: a request beside {n} computing threads", 1e3 / a_second, "ms")
        for n, a_second in zip(ECHO_THREADS, ECHO_A_SECOND[SWITCH_INTERVAL_S], strict=True)
    ),
    reading=(
        "Median and 99th percentile in ms; an answer takes well below 1 ms if nobody is in its way."
        " Work is what the computing threads did meanwhile, as a multiple of stock."
    ),
    remarks={
        "batch": "Under batch threads keep the GIL for long.",
        "priority": "Under priority those that compute come last.",
    },
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
