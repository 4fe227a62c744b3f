"""matmul: matrices multiplied by one to eight workers, which share what they work on.

The POSH paper gave the same worker ordinary lists and threads, or shared lists and processes: on
eight processors its processes were seven times as fast as one, and threads slower than one. The
weights are the paper's: one thread with ordinary lists is 100.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import partial

from ungil.interpreters import Interpreter
from ungil.lab import borrowed
from ungil.lab.experiment import (
    Cell,
    Experiment,
    Figure,
    Measured,
    Plan,
    Row,
    Source,
    Table,
    missing,
)
from ungil.lab.figures import NOTHING, number
from ungil.lab.published import POSH, POSH_S
from ungil.lab.results import Results
from ungil.lab.workload import run

NAME = "matmul"
THREADS, SHARE, INTERPRETERS, APART = "threads", "share", "interpreters", "apart"
HOW = {
    THREADS: "threads",
    SHARE: "ungil.share",
    INTERPRETERS: "sub-interpreters",
    APART: "apart",
}
FREE_THREADED = "free-threaded threads"
NO_FREE_THREADED = (
    "there is no free-threaded Python here: uv python install 3.13t, or pyenv install 3.13t"
)

# S. V. Valvåg, K. Jacobsen, Å. Kvalnes, "POSH: Python Object Sharing", PyCon DC 2003: what 1 to 8
# workers took on 8 processors of 200 MHz with Python 2.2.
THEN = {THREADS: "threads", SHARE: "processes"}

SIZE, WORKERS, ROUNDS = 200, range(1, 9), 3
SIZE_QUICK, WORKERS_QUICK, ROUNDS_QUICK = 160, (1, 2, 4), 1
MULTIPLIED_A_SECOND = 20e6
# To say that something is missing.
NO_TIME_S = 1e-3
# Interpreters have a GIL of their own since.
OWN_GIL = (3, 12)


def measure(interpreter: Interpreter, size: int, workers: int, how: str) -> Measured:
    if how != SHARE:
        return run(interpreter, "matmul", size, workers, how)
    with borrowed.variables(interpreter) as extra:
        return run(interpreter, "matmul", size, workers, how, extra=extra)


def why_not(interpreter: Interpreter, how: str) -> str | None:
    """Why an interpreter cannot have such workers."""
    if how == SHARE:
        return borrowed.why_not(interpreter)
    if how == INTERPRETERS and (interpreter.number < OWN_GIL or interpreter.free_threaded):
        return "its interpreters have no GIL of their own, as those of CPython 3.12 have"
    return None


def _plan(plan: Plan) -> Iterator[Cell]:
    size = SIZE_QUICK if plan.quick else SIZE
    settings = {"size": size}
    seconds = 0.15 + size**3 / MULTIPLIED_A_SECOND
    for interpreter in plan.interpreters:
        reasons = {how: why_not(interpreter, how) for how in HOW}
        for how, why in reasons.items():
            if why is not None:
                yield Cell(NAME, interpreter, HOW[how], partial(missing, why), NO_TIME_S, settings)
        for round_ in range(1, (ROUNDS_QUICK if plan.quick else ROUNDS) + 1):
            for workers in WORKERS_QUICK if plan.quick else WORKERS:
                for how in HOW:
                    if reasons[how] is not None:
                        continue
                    its = partial(measure, interpreter, size, workers, how)
                    variant = _variant(how, workers)
                    yield Cell(NAME, interpreter, variant, its, seconds, settings, round_)
    if not any(interpreter.free_threaded for interpreter in plan.interpreters):
        none = partial(missing, NO_FREE_THREADED)
        yield Cell(NAME, None, FREE_THREADED, none, NO_TIME_S, settings)


def _variant(how: str, workers: int) -> str:
    return f"{workers} {HOW[how]}"


def _walls_s(results: Results, python: str, variant: str) -> dict[int, float]:
    """Wall times by round."""
    return {
        it.round: it.measured["wall_s"]
        for it in results
        if (it.python, it.variant, it.status) == (python, variant, "measured")
    }


def weighted(results: Results, python: str, how: str, workers: int) -> float | None:
    """The time, of one thread's in the same round, in percent."""
    ones = _walls_s(results, python, _variant(THREADS, 1))
    these = _walls_s(results, python, _variant(how, workers))
    shares = [100 * these[round_] / ones[round_] for round_ in these if round_ in ones]
    return statistics.median(shares) if shares else None


def _one_thread_s(results: Results, python: str) -> float | None:
    walls = _walls_s(results, python, _variant(THREADS, 1)).values()
    return statistics.median(walls) if walls else None


def published(how: str, workers: int) -> float:
    """What the paper has for threads or for shared objects, of one thread's time, in percent."""
    return POSH[THEN[how]][workers - 1]


def workers_of(results: Results) -> list[int]:
    """Numbers of workers that there are results for."""
    here = {it.variant for it in results}
    return [it for it in WORKERS if _variant(THREADS, it) in here]


def _tables(results: Results) -> Sequence[Table]:
    return [_published(results), *(_today(results, python) for python in results.pythons())]


def _published(results: Results) -> Table:
    rows = [
        Row(
            (
                str(it),
                f"{POSH_S[THEN[THREADS]][it - 1]:.1f}",
                f"{POSH_S[THEN[SHARE]][it - 1]:.1f}",
                f"{published(THREADS, it):.1f}",
                f"{published(SHARE, it):.1f}",
            ),
            "published",
        )
        for it in workers_of(results) or WORKERS
    ]
    columns = ("workers", "threads, s", "POSH, s", "threads", "POSH")
    return Table(columns, rows, "Valvåg et al. 2003, 8 processors: one thread is 100")


def _today(results: Results, python: str) -> Table:
    cores = results.header.machine["cores"]
    rows: list[Row] = []
    for workers in workers_of(results):
        weights = (weighted(results, python, how, workers) for how in HOW)
        label = f"{workers} (on {cores} cores)" if workers > cores else str(workers)
        cells = (label, *(NOTHING if it is None else f"{it:.1f}" for it in weights))
        rows.append(Row(cells))
    title = f"{python}: one thread is 100, {number(_one_thread_s(results, python))} s"
    return Table(("workers", *HOW.values()), rows, title)


EXPERIMENT = Experiment(
    name=NAME,
    title="Matrices, by workers that share them",
    question=(
        "Do more workers make pure computation quicker, and can processes share objects as"
        " threads do? One to eight workers multiply two matrices of 200 by 200, as threads, as"
        " processes on lists of ungil.share, and in interpreters of their own."
    ),
    source=Source("Valvåg, Jacobsen, Kvalnes", 2003, "paper: POSH: Python Object Sharing"),
    published=(
        Figure("seconds of one thread", POSH_S["threads"][0], "s"),
        Figure("eight threads, of one thread's time", published(THREADS, 8), "%"),
        Figure("POSH with one process, of one thread's time", published(SHARE, 1), "%"),
        Figure("POSH with two processes", published(SHARE, 2), "%"),
        Figure("POSH with eight processes", published(SHARE, 8), "%"),
    ),
    reading=(
        "Less is quicker; 100 / workers would be ideal. Apart is processes that share nothing: what"
        " these cores give. Times include starting the workers; more workers than cores cannot be"
        " quicker."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
