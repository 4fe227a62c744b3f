"""What an operation on a shared object costs, beside its builtin and other ways to share.

    python bench/share_single.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Each is measured in a process of its own together with the builtin, in turns and in the same loop
(bench/programs/shared_operation.py). `of the loops` is the ratio of the same loop with the shared
object and with the builtin, and what targets are held to; `ratio` leaves the empty loop out of
both, which is stricter, and noisy where the builtin takes one or two nanoseconds. The builtin
always wins: a plain dict or list is what to use where nobody shares. `UltraDict` reads a copy that
each process has for itself, `lmdb` keeps bytes, and its user converts.
"""

import argparse
import statistics
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import (
    LMDB,
    MANAGER,
    PACKAGES,
    SMD,
    ULTRADICT,
    UNGIL,
    Way,
    broke,
    run,
    times_faster,
    working,
)
from surroundings import spread

BUILTIN = Way("builtin")
MP_LOCK = Way("mp.Lock")
DICTS = [BUILTIN, UNGIL, MANAGER, ULTRADICT, SMD, LMDB]
LISTS = [BUILTIN, UNGIL, MANAGER, Way("ShareableList"), Way("mp.Array"), Way("mp.RawArray")]
ATTRIBUTES = [BUILTIN, UNGIL, MANAGER, Way("mp.Value"), Way("mp.RawValue")]
VALUES = [BUILTIN, UNGIL, MANAGER]
OPERATIONS = {
    "dict get": DICTS,
    "dict set": DICTS,
    "list get": LISTS,
    "list set": LISTS,
    "attribute get": ATTRIBUTES,
    "attribute set": ATTRIBUTES,
    "nested get": VALUES,
    "struct get": VALUES,
    "datetime get": VALUES,
    "enum get": VALUES,
    "tuple get": VALUES,
    "index of a tuple": VALUES,
    "lock and unlock": [BUILTIN, UNGIL, MP_LOCK, MANAGER],
}
# What has to be shown: the most that it may cost in terms of the builtin.
MOST = {
    "dict get": 6.0,
    "dict set": 8.0,
    "list get": 4.0,
    "list set": 6.0,
    "attribute get": 4.0,
    "nested get": 8.0,
    "datetime get": 20.0,
    "enum get": 20.0,
    "tuple get": 20.0,
}
TIMES_MANAGER = 100.0
TIMES_ULTRADICT = {"dict get": 2.0, "dict set": 10.0}
MOST_OF_MP_LOCK = 1.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--seconds", type=float, default=1.0, help="of a measurement [1]")
    made.add_argument("--operation", choices=OPERATIONS, action="append", help="instead of all")
    options = parse(made)
    if options.quick:
        options.seconds = 0.1
    report(options, PACKAGES, _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each operation."""
    for operation in options.operation or OPERATIONS:

        def measure(way: Way, operation: str = operation) -> Measured:
            words = (operation, way.name, options.seconds)
            return run(options.python, "shared_operation", *words)

        runs = interleave(operation, OPERATIONS[operation], measure, options)
        yield runs, _table(runs)


def _rate(measured: Measured) -> float:
    """Operations per second, with the loop around them."""
    return 1e9 / measured["loop_ns"]


def _ratio(measured: Measured) -> float:
    return measured["ratio"]


def _loop_ratio(measured: Measured) -> float:
    return measured["loop_ratio"]


def _table(runs: Runs) -> Table:
    """What an operation costs."""
    table = columns(
        f"{runs.setting}: the builtin's in the same loop is 1",
        *("", "ns in the loop", "empty loop", "ratio", "of the loops", "a second"),
    )
    for way in OPERATIONS[runs.setting]:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        table.add_row(
            way.name,
            *(f"{runs.median(way, lambda m, f=f: m[f]):.1f}" for f in ("loop_ns", "empty_ns")),
            spread(runs.each(way, _ratio)),
            f"{runs.median(way, _loop_ratio):.2f}",
            f"{runs.median(way, _rate):,.0f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 4 asks for."""
    for runs in taken:
        name = runs.setting
        if (why := broke(runs, UNGIL)) is not None:
            yield Target(name, False, f"cannot be measured: {why}")
            continue
        if name in MOST:
            seen, loops = runs.each(UNGIL, _ratio), runs.each(UNGIL, _loop_ratio)
            yield Target(
                f"{name}: at most {MOST[name]:g} times the builtin in the same loop",
                statistics.median(loops) <= MOST[name],
                f"{spread(loops)}; without the empty loop {spread(seen)}",
            )
        if name in TIMES_ULTRADICT:
            yield times_faster(runs, MANAGER, TIMES_MANAGER, _rate)
            yield times_faster(runs, ULTRADICT, TIMES_ULTRADICT[name], _rate)
        if MP_LOCK in working(runs, OPERATIONS[name]):
            seen = runs.ratios(UNGIL, MP_LOCK, lambda measured: measured["loop_ns"])
            met = statistics.median(seen) <= MOST_OF_MP_LOCK
            yield Target(f"{name}: no slower than mp.Lock", met, f"{spread(seen)} of its time")


if __name__ == "__main__":
    main()
