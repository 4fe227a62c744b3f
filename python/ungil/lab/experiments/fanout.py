"""fanout: ten thousand hosts that each answer after one round trip.

The text asked how many threads are enough for nornir, and showed that goroutines need none of that:
ten thousand tasks that sleep for one RTT, as whole processes. Nothing can be quicker than the RTT.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ungil.interpreters import Interpreter, describe
from ungil.lab import borrowed, whole
from ungil.lab.chart import Kind
from ungil.lab.experiment import (
    Cell,
    Experiment,
    Figure,
    Measured,
    Missing,
    Plan,
    Row,
    Source,
    Table,
)
from ungil.lab.figures import count, median, number
from ungil.lab.published import GORNIR, NORNIR, Whole
from ungil.lab.results import Results
from ungil.lab.workload import words_of

NAME = "fanout"
ITEMS, RTTS_S, ROUNDS = 10_000, (0.05, 0.1, 0.3, 1.0), 3
ITEMS_QUICK, RTTS_S_QUICK, ROUNDS_QUICK = 1_000, (0.05,), 1
# As many as the text has.
WORKERS, WORKERS_QUICK = (100, 200, 500, 1_000, 1_500, 2_000, 5_000, 10_000), (100, 1_000)
# What takes longer is measured once.
LONG_S = 4.0
OWN = "ungil's own"
# What starting and an item take, about, of the slower ones.
START_S, ITEM_S = 0.15, 50e-6
# asyncio.Runner and TaskGroup are of this version; concurrent.futures of any 3.
ASYNCIO_SINCE = (3, 11)


@dataclass(frozen=True)
class Way:
    """A way to do it on an interpreter."""

    name: str
    program: str
    """A workload, without `fanout_`."""
    how: str
    limit: int = 0
    """How many at once; 0 if all."""
    kind: Kind = "stock"

    def waits_s(self, items: int, rtt_s: float) -> float:
        """What it waits by arithmetic alone."""
        return rtt_s * (-(-items // self.limit) if self.limit else 1)

    def measure(self, interpreter: Interpreter, items: int, rtt_s: float) -> Measured:
        """Wall, user and system seconds, and peak memory in bytes, of the whole process."""
        work = (self.how, items, rtt_s, 0, self.limit or items, 1)
        words = words_of(interpreter, f"fanout_{self.program}", *work)
        patience_s = self.waits_s(items, rtt_s) + whole.PATIENCE_S
        if self.program != "ungil":
            return whole.used(words, items, patience_s=patience_s)
        with borrowed.variables(interpreter) as extra:
            return whole.used(words, items, extra=extra, patience_s=patience_s)


def ways() -> Iterator[Way]:
    """Ways for every interpreter that can, without any package."""
    yield Way("1,000 threads", "threads", "pool", 1_000)
    yield Way("asyncio gather", "asyncio", "asyncio gather sleep")
    yield Way("ungil asyncio", "ungil", "asyncio-stock", kind="ungil")
    yield Way("ungil lean", "ungil", "lean", kind="ungil")


def own_ways(workers_of_nornir: Sequence[int] = WORKERS) -> Iterator[Way]:
    """Ways that need packages, which ungil's own interpreter can have."""
    for workers in workers_of_nornir:
        yield Way(f"nornir threaded {workers:,}", "nornir", "threaded", workers)
    yield Way("nornir ungil threads 1,000", "nornir", "ungil-threads", 1_000, "ungil")
    yield Way("nornir ungil green", "nornir", "ungil-green", kind="ungil")
    yield Way("nornir ungil asyncio", "nornir", "ungil-asyncio", kind="ungil")
    yield Way("nornir ungil lean", "nornir", "ungil-lean", kind="ungil")


PACKAGES = {"ungil-green": ("gevent", "green")}


def measure_own(way: Way, interpreter: Interpreter, items: int, rtt_s: float) -> Measured:
    from importlib.util import find_spec

    wanted = [("nornir", "nornir"), *filter(None, [PACKAGES.get(way.how)])]
    for package, extra in wanted:
        if find_spec(package) is None:
            raise Missing(f'ungil\'s own Python has no {package}: pip install "ungil[{extra}]"')
    return way.measure(interpreter, items, rtt_s)


def _goroutines(items: int, rtt_s: float) -> Measured:
    return whole.used([whole.goroutines(), items, rtt_s, 0, 0], items)


def _gornir(processors: str, items: int, rtt_s: float) -> Measured:
    extra = {"GOMAXPROCS": processors} if processors else {}
    return whole.used([whole.gornir(), items, rtt_s, 0, "logrus"], items, extra=extra)


def go_ways() -> dict[str, Callable[[int, float], Measured]]:
    """What is measured without a Python."""
    return {
        "goroutines": _goroutines,
        "gornir": partial(_gornir, ""),
        "gornir, GOMAXPROCS=1": partial(_gornir, "1"),
        "gornir, GOMAXPROCS=100": partial(_gornir, "100"),
    }


def works(way: Way, interpreter: Interpreter) -> bool:
    """Whether an interpreter is new enough for a way."""
    if way.program == "asyncio":
        return interpreter.number >= ASYNCIO_SINCE
    return way.program != "ungil" or borrowed.why_not(interpreter) is None


def _plan(plan: Plan) -> Iterator[Cell]:
    items = ITEMS_QUICK if plan.quick else ITEMS
    own = describe(sys.executable)
    own = replace(own, name=f"{own.short}, {OWN}")
    for rtt_s in RTTS_S_QUICK if plan.quick else RTTS_S:
        for round_ in range(1, (ROUNDS_QUICK if plan.quick else ROUNDS) + 1):
            cell = partial(_cell, items, rtt_s, round_)
            for name, measure in go_ways().items():
                yield from cell(None, name, partial(measure, items, rtt_s), rtt_s)
            for way in own_ways(WORKERS_QUICK if plan.quick else WORKERS):
                measure = partial(measure_own, way, own, items, rtt_s)
                yield from cell(own, way.name, measure, way.waits_s(items, rtt_s))
            for interpreter in plan.interpreters:
                for way in ways():
                    if works(way, interpreter):
                        measure = partial(way.measure, interpreter, items, rtt_s)
                        yield from cell(interpreter, way.name, measure, way.waits_s(items, rtt_s))


def _cell(
    items: int,
    rtt_s: float,
    round_: int,
    interpreter: Interpreter | None,
    name: str,
    measure: Callable[[], Measured],
    waits_s: float,
) -> Iterator[Cell]:
    """A cell, unless it takes long and is not the first."""
    seconds = START_S + (0 if interpreter is None else items * ITEM_S) + waits_s
    if round_ == 1 or seconds <= LONG_S:
        settings = {"items": items, "rtt_s": rtt_s}
        yield Cell(NAME, interpreter, variant_of(rtt_s, name), measure, seconds, settings, round_)


def variant_of(rtt_s: float, name: str) -> str:
    return f"{1000 * rtt_s:g} ms, {name}"


def published(rtt_s: float) -> dict[str, Whole]:
    """What the text has for an RTT; a quick run has fewer hosts."""
    gornir = {"default": "gornir"} | {it: f"gornir, GOMAXPROCS={it}" for it in ("1", "100")}
    named = [(f"nornir threaded {it.workers}", it) for it in NORNIR]
    named += [(gornir[it.workers], it) for it in GORNIR]
    return {f"2020: {name}, {ITEMS:,} hosts": it for name, it in named if it.rtt_s == rtt_s}


def _tables(results: Results) -> Sequence[Table]:
    here = {float(it.settings["rtt_s"]) for it in results}
    return [_table(results, rtt_s) for rtt_s in sorted(here)]


def _table(results: Results, rtt_s: float) -> Table:
    rows = [Row(("floor: the RTT", _seconds(rtt_s), *[""] * 4), "published")]
    for label, it in published(rtt_s).items():
        taken = (it.wall_s, it.user_s, it.system_s)
        rows.append(Row((label, *map(_seconds, taken), count(it.cpu_percent), ""), "published"))
    for name in go_ways():
        rows.append(_row(results, "", rtt_s, name, "stock"))
    for python in results.pythons():
        for way in (*own_ways(), *ways()):
            if results.rounds(python, variant_of(rtt_s, way.name)):
                rows.append(_row(results, python, rtt_s, way.name, way.kind))
    items = max(it.settings["items"] for it in results)
    columns = ("", "wall, s", "user, s", "system, s", "CPU, %", "peak, MB")
    return Table(columns, rows, f"{items:,} hosts, RTT {1000 * rtt_s:g} ms: whole processes")


def _row(results: Results, python: str, rtt_s: float, name: str, kind: Kind) -> Row:
    rounds = results.rounds(python, variant_of(rtt_s, name))
    used = median(rounds, lambda it: 100 * (it["user_s"] + it["system_s"]) / it["wall_s"])
    peak = median(rounds, lambda it: it["peak_bytes"] / 1e6)
    seconds = (median(rounds, of) for of in ("wall_s", "user_s", "system_s"))
    label = f"{name} ({python})" if python else name
    return Row((label, *map(_seconds, seconds), count(used), count(peak)), kind)


def _seconds(value: float | None) -> str:
    """To the millisecond, or with four digits."""
    return number(value, 4)


def _best(rows: Sequence[Whole]) -> Sequence[Whole]:
    """The quickest at the shortest RTT and at the longest."""
    return [
        min((it for it in rows if it.rtt_s == rtt_s), key=lambda it: it.wall_s)
        for rtt_s in (RTTS_S[0], RTTS_S[-1])
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="Ten thousand hosts",
    question=(
        "How many threads are enough for ten thousand hosts, and what do they cost beside"
        " coroutines? Each host answers after one round trip; whole processes are measured, from"
        " before they start until they have ended."
    ),
    source=Source(
        "the author of nornir", 2020, "blog: nornir.tech, How many threads are enough threads?"
    ),
    published=(
        *(
            Figure(f"{name}, RTT {1000 * it.rtt_s:g} ms, {workers} {it.workers}", it.wall_s, "s")
            for name, workers, rows in (
                ("nornir", "workers:", NORNIR),
                ("gornir", "GOMAXPROCS:", GORNIR),
            )
            for it in _best(rows)
        ),
    ),
    reading=(
        "Nothing is quicker than the floor. nornir is measured in ungil's own Python, which has it;"
        " the others have no packages, so asyncio there is without uvloop, and what is not shown"
        " needs Python 3.11."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
