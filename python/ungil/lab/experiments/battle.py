"""battle: two computing threads fight for the GIL, on one core, and with a core each.

The text had instrumented an interpreter to show it. ungil records the same from outside: who held
the GIL when, how often it changed hands, and how often a thread was woken for nothing. A thread
that waits sleeps in the kernel once, and with the old GIL once more each time it is woken and finds
it taken again; so its voluntary context switches, less its waits, are attempts that failed. Since
3.2 it sleeps until a switch interval is over, and then makes a drop request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ungil.interpreters import Interpreter
from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import (
    Cell,
    Experiment,
    Measured,
    Plan,
    Row,
    Source,
    Table,
)
from ungil.lab.figures import NOTHING, count, number
from ungil.lab.recording import recording
from ungil.lab.results import Results
from ungil.lab.workload import running, words_of
from ungil.report.model import Process, Report

NAME = "battle"
VARIANTS: Mapping[str, Conditions] = {
    "on one core": STOCK.on(1),
    "a core each": STOCK.on(2),
    "interactive": Conditions("interactive", 2),
    "fair": Conditions("fair", 2),
    "batch": Conditions("batch", 2),
}
# For the threads to have started.
PATIENCE_S = 5.0
N, N_QUICK = 20_000_000, 6_000_000
COUNTED_A_SECOND = 10e6
# What the picture shows, from the middle of the run: one character is SLOT_NS.
SLOT_NS = 1_000_000
SLOTS = 60
# A picture of more stretches could not be looked at.
MOST_SPANS = 400
NOBODY = "."

Stretch = tuple[int, int, int]
"""A thread, counting from 1, and from when to when it held, in nanoseconds."""


def _measure(interpreter: Interpreter, n: int, conditions: Conditions) -> Measured:
    conditions.check(interpreter)
    with recording(interpreter, conditions) as recorder:
        words = words_of(interpreter, "countdown", n, "threads")
        with running(words, conditions, extra=recorder.variables) as program:
            recorder.start()
            apart = conditions.cores == 2 and _part(program.pid)
            said = program.result()
        process, report = recorder.stop()
        return {
            "apart": apart,
            "wall_s": said["wall_s"],
            **_fought(interpreter, process, report, said["wall_s"]),
            **_picture(process, recorder.trace),
        }


def _part(pid: int) -> bool:
    """Give each of the two threads that count a core of its own, if they are seen in time.

    Where the kernel places them both on one, which it does as it likes, there is no battle. Under
    a policy of long turns the second thread may begin when the first has ended.
    """
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        try:
            tids = {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()} - {pid}
            if len(tids) >= 2:
                for tid, core in zip(sorted(tids), sorted(os.sched_getaffinity(pid)), strict=False):
                    os.sched_setaffinity(tid, {core})
                return True
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.001)
    return False


def _counting(process: Process) -> list[int]:
    """The two threads that count: those that held most."""
    threads = sorted(process["gils"][0]["threads"], key=lambda thread: -thread["held_s"])
    return sorted(thread["tid"] for thread in threads[:2])


def _fought(interpreter: Interpreter, process: Process, report: Report, wall_s: float) -> Measured:
    """Handoffs, and attempts that failed, of the counting threads."""
    is_old = interpreter.number < (3, 2)
    gil = process["gils"][0]
    counting = _counting(process)
    both = [thread for thread in gil["threads"] if thread["tid"] in counting]
    waits = sum(thread["waits"]["count"] for thread in both)
    switches = [thread.get("context_switches") for thread in both]
    slept = sum(one["voluntary"] for one in switches if one is not None)
    return {
        "handoffs": gil["handoffs"],
        "handoffs_per_s": gil["handoffs"] / wall_s,
        "releases": sum(thread["holds"]["count"] for thread in both),
        "waits": waits,
        # From 3.2 on a thread also sleeps for other reasons, such as to time out.
        "failed_attempts": max(0, slept - waits) if is_old and None not in switches else None,
        "drop_requests": sum(thread.get("drop_requests", 0) for thread in both),
        "wait_p50_ms": max(thread["waits"]["p50_us"] for thread in both) / 1e3,
        "wait_max_ms": max(thread["waits"]["max_us"] for thread in both) / 1e3,
        "lost_events": report["lost_events"],
    }


def _picture(process: Process, trace: Path) -> Measured:
    """Who held when, in the middle of the count: slot by slot, and stretch by stretch."""
    from ungil._native import trace_stretches

    # Of the time in which there are threads: on a busy machine a start may take as long.
    startup_s = process.get("startup_s") or 0.0
    counting_s = process.get("duration_s", 0.0) - startup_s
    middle_ns = int((process.get("started_s", 0.0) + startup_s + counting_s / 2) * 1e9)
    until_ns = middle_ns + SLOTS * SLOT_NS
    number_of = {tid: number for number, tid in enumerate(_counting(process), 1)}
    holds = merged(
        (number_of[tid], begin_ns - middle_ns, end_ns - middle_ns)
        for pid, gil, tid, held, begin_ns, end_ns in trace_stretches(
            # Also the hold that has begun before.
            str(trace),
            max(0, middle_ns - SLOTS * SLOT_NS),
            until_ns,
        )
        if held and gil == 0 and pid == process["pid"] and tid in number_of
    )
    shown = [
        (who, max(0, begin), min(end, SLOTS * SLOT_NS)) for who, begin, end in holds if end > 0
    ]
    return {
        "slots": slots(shown),
        "spans": [(who, begin / 1e6, end / 1e6) for who, begin, end in shown[:MOST_SPANS]],
    }


def merged(holds: Iterable[Stretch]) -> list[Stretch]:
    """Holds in order of time, those of one thread without another's between them as one."""
    together: list[Stretch] = []
    for who, begin, end in sorted(holds, key=lambda hold: hold[1]):
        if together and together[-1][0] == who:
            together[-1] = (who, together[-1][1], end)
        else:
            together.append((who, begin, end))
    return together


def slots(holds: Sequence[Stretch]) -> str:
    """For each slot the number of the thread that held for most of it."""
    held: list[dict[int, int]] = [{1: 0, 2: 0} for _ in range(SLOTS)]
    for who, begin, end in holds:
        for slot in range(begin // SLOT_NS, min(SLOTS, -(-end // SLOT_NS))):
            inside = min(end, (slot + 1) * SLOT_NS) - max(begin, slot * SLOT_NS)
            held[slot][who] += inside
    return "".join(
        str(max(one, key=lambda who: one[who])) if any(one.values()) else NOBODY for one in held
    )


def _plan(plan: Plan) -> Iterator[Cell]:
    n = N_QUICK if plan.quick else N
    for interpreter in plan.interpreters:
        for variant, conditions in VARIANTS.items():
            measure = partial(_measure, interpreter, n, conditions)
            seconds = 2 * n / COUNTED_A_SECOND + 0.2
            yield Cell(NAME, interpreter, variant, measure, seconds, {"n": n})


def each(results: Results) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Interpreter, variant, and what was measured."""
    for python in results.pythons():
        for variant in VARIANTS:
            for measured in results.rounds(python, variant):
                yield python, variant, measured


def is_stock(variant: str) -> bool:
    return VARIANTS[variant].policy is None


def _label(python: str, variant: str) -> str:
    return f"{python}{'' if is_stock(variant) else ' ungil'} {variant}".strip()


def _tables(results: Results) -> Sequence[Table]:
    fought: list[Row] = []
    seen: list[Row] = []
    for python, variant, measured in each(results):
        label, kind = _label(python, variant), "stock" if is_stock(variant) else "ungil"
        failed = measured["failed_attempts"]
        fought.append(
            Row(
                (
                    label,
                    count(measured["handoffs_per_s"]),
                    count(measured["releases"] / measured["wall_s"]),
                    NOTHING if failed is None else count(failed / measured["wall_s"]),
                    count(measured["drop_requests"] / measured["wall_s"]),
                    number(measured["wait_p50_ms"]),
                    number(measured["wait_max_ms"]),
                ),
                "stock" if kind == "stock" else "ungil",
            )
        )
        seen.append(Row((label, measured["slots"]), "stock" if kind == "stock" else "ungil"))
    columns = (
        *("", "handoffs/s", "releases/s", "failed attempts/s", "drop requests/s"),
        *("wait p50 ms", "wait max ms"),
    )
    return [
        Table(columns, fought),
        Table(("", ""), seen, f"who held, in {SLOTS} ms: a character a millisecond", True),
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="The battle for the GIL",
    question=(
        "What do two computing threads do to get the GIL from each other, on one core and on two?"
        " ungil records who held it when, how often it changed hands, and how often a thread was"
        " woken to find it taken."
    ),
    source=Source("David Beazley", 2009, "talk: Inside the Python GIL"),
    published=(),
    reading=(
        "A handoff is the GIL going to the other thread. Few releases are handoffs where a thread"
        " takes the GIL back before the other one has woken up, whose attempt then failed."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
