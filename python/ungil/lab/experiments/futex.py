"""futex: the system calls of a program that has no use for them, and of one that has.

In 2007 each `import` of a module that was there already took and freed a lock, which cost a system
call each time, in programs without any thread. Compiling Python with the user-space threads of GNU
Pth took the calls away; `ungil run --green` is what is like it today.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ungil.interpreters import Interpreter
from ungil.lab import green, system_calls
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
from ungil.lab.figures import NOTHING, count, median, milliseconds, ratio, times
from ungil.lab.published import APPLICATION, APPLICATION_FUTEX_PERCENT, FUTEX, FUTEX_S
from ungil.lab.results import Results
from ungil.lab.workload import run, words_of

NAME = "futex"
PTHREAD, PTH = FUTEX
ALONE, IDLE, TURNS = "alone", "idle", "turns"
CALLS = "futex calls, "
GREEN = ", green"

IMPORTS, IMPORTS_QUICK = 1_000_000, 100_000
TURNS_TAKEN, TURNS_TAKEN_QUICK = 10_000, 1_000
ROUNDS, ROUNDS_QUICK = 5, 2
# To say that something is missing.
NO_TIME_S = 1e-3
# Of the slowest interpreter, and under strace where every turn is several system calls.
IMPORTS_A_SECOND, TURNS_A_SECOND, TURNS_COUNTED_A_SECOND = 5e6, 5e4, 2e3


def _extra(interpreter: Interpreter, is_green: bool) -> dict[str, str]:
    return green.variables(interpreter) if is_green else {}


def _measure(interpreter: Interpreter, n: int, how: str, is_green: bool) -> Measured:
    return run(interpreter, "futex", n, how, extra=_extra(interpreter, is_green))


def _calls(interpreter: Interpreter, n: int, how: str, is_green: bool) -> Measured:
    words = words_of(interpreter, "futex", n, how)
    _, calls = system_calls.count(words, extra=_extra(interpreter, is_green))
    return {"calls": sum(calls.values()), "futex": calls.get("futex", 0)}


def _plan(plan: Plan) -> Iterator[Cell]:
    imports = IMPORTS_QUICK if plan.quick else IMPORTS
    turns = TURNS_TAKEN_QUICK if plan.quick else TURNS_TAKEN
    for interpreter in plan.interpreters:
        why = green.why_not(interpreter)
        if why is not None:
            yield Cell(NAME, interpreter, "green", partial(missing, why), NO_TIME_S)
        kinds = (False, True) if why is None else (False,)
        ways = [(how, is_green) for how in (ALONE, IDLE, TURNS) for is_green in kinds]
        for how, is_green in ways:
            n = turns if how == TURNS else imports
            a_second = TURNS_COUNTED_A_SECOND if how == TURNS else IMPORTS_A_SECOND
            measure = partial(_calls, interpreter, n, how, is_green)
            variant = CALLS + how + GREEN * is_green
            yield Cell(NAME, interpreter, variant, measure, 0.3 + n / a_second, {"n": n})
        for round_ in range(1, (ROUNDS_QUICK if plan.quick else ROUNDS) + 1):
            for how, is_green in ways:
                n = turns if how == TURNS else imports
                a_second = TURNS_A_SECOND if how == TURNS else IMPORTS_A_SECOND
                measure = partial(_measure, interpreter, n, how, is_green)
                seconds = 0.05 + 0.1 * is_green + n / a_second
                variant = how + GREEN * is_green
                yield Cell(NAME, interpreter, variant, measure, seconds, {"n": n}, round_)


def futex_calls(results: Results, python: str, variant: str) -> float | None:
    return median(results.rounds(python, CALLS + variant), "futex")


def _wall_s(results: Results, python: str, variant: str) -> float | None:
    return median(results.rounds(python, variant), "wall_s")


def _to_stock(results: Results, python: str, how: str) -> float | None:
    """The wall time on green threads, as a multiple of that on real ones."""
    return ratio(_wall_s(results, python, how + GREEN), _wall_s(results, python, how))


def _number(results: Results, variant: str) -> str:
    """How many imports or turns were asked for."""
    numbers = {it.settings["n"] for it in results if it.variant == variant}
    return count(max(numbers)) if numbers else NOTHING


def _tables(results: Results) -> Sequence[Table]:
    return [_imports(results), _turns(results), _then()]


def _then() -> Table:
    """Everything that the text tells in numbers."""
    of_application = ("the application before that", *_seconds(), count(APPLICATION["futex"]))
    others = ", ".join(f"{name} {count(n)}" for name, n in APPLICATION.items() if name != "futex")
    rows = [
        Row(
            (
                f"a million imports, {it.threads}",
                *_seconds(it.wall_s, it.user_s, it.system_s),
                count(it.futex),
                f"read {count(it.read)}, _llseek {count(it.llseek)}",
            ),
            "published",
        )
        for it in FUTEX
    ]
    rows.append(Row((*of_application, others), "published"))
    columns = ("", "wall", "user", "system", "futex", "other system calls")
    title = (
        f"2007: futex was {APPLICATION_FUTEX_PERCENT:g} % of the application's time in system"
        f" calls, and {milliseconds(FUTEX_S)} of the imports'"
    )
    return Table(columns, rows, title)


def _seconds(*times_s: float) -> tuple[str, ...]:
    return tuple(map(milliseconds, times_s)) if times_s else ("",) * 3


def _imports(results: Results) -> Table:
    rows = [
        Row(
            (
                "Majkowski 2007, Python 2.5.1",
                count(PTHREAD.futex),
                "",
                "",
                milliseconds(PTHREAD.wall_s),
                times(PTH.wall_s / PTHREAD.wall_s),
            ),
            "published",
        ),
        *(
            Row(
                (
                    python,
                    count(futex_calls(results, python, ALONE)),
                    count(futex_calls(results, python, IDLE)),
                    count(futex_calls(results, python, IDLE + GREEN)),
                    milliseconds(_wall_s(results, python, ALONE)),
                    times(_to_stock(results, python, ALONE)),
                )
            )
            for python in results.pythons()
        ),
    ]
    columns = ("", "futex calls", "beside an idle thread", "that, green", "wall", "wall, green")
    return Table(columns, rows, f"{_number(results, ALONE)} imports (a million in 2007)")


def _turns(results: Results) -> Table:
    rows = [
        Row(
            (
                python,
                count(futex_calls(results, python, TURNS)),
                count(futex_calls(results, python, TURNS + GREEN)),
                milliseconds(_wall_s(results, python, TURNS)),
                times(_to_stock(results, python, TURNS)),
            )
        )
        for python in results.pythons()
    ]
    columns = ("", "futex calls", "futex calls, green", "wall", "wall, green")
    return Table(columns, rows, f"two threads that take {_number(results, TURNS)} turns each")


EXPERIMENT = Experiment(
    name=NAME,
    title="System calls of a program without threads",
    question=(
        "How many futex calls does a program make that needs none? strace counts those of a"
        " million imports of a module that is there already, alone and beside a thread that only"
        " waits, and those of two threads that do need each other; on real threads and on green"
        " ones."
    ),
    source=Source(
        "Marek Majkowski", 2007, "blog: GNU pth instead of pthread: hardcore python tuning"
    ),
    published=(
        Figure("futex calls of a million imports", PTHREAD.futex, ""),
        Figure("a million imports", PTHREAD.wall_s, "s"),
        Figure("the same with GNU Pth", PTH.wall_s, "s"),
        Figure("futex calls of the application", APPLICATION["futex"], ""),
        Figure("wall-clock time that GNU Pth saved, at least", 25, "%"),
        Figure("wall-clock time that GNU Pth saved, at most", 30, "%"),
    ),
    reading=(
        "A handful of calls is what starting and ending take. The last column is wall time on"
        " green threads (then GNU Pth), of that without: below 1x it is quicker."
    ),
    plan=lambda plan: list(_plan(plan)),
    tables=_tables,
)
