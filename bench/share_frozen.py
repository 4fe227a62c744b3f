"""What it costs to read a frozen structure, and what memory eight readers of a large one take.

    python bench/share_frozen.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Each operation is measured in a process of its own together with the builtin, in turns and in the
same loop (bench/programs/frozen_operation.py); `of the loops` is the ratio of the loops, `ratio`
leaves the empty loop out of both. `heap` is the same in a shared heap, which can be changed;
`lmdb` keeps bytes, in one transaction, and its user converts; `sqlite` and `shelve` are files as
well. To go through all items is where a frozen dict loses most: each key and value is made.

Then eight readers start from a file of some 1 GB (bench/programs/frozen_readers.py), and from a
pickle of the same, of which each makes a copy of its own: fewer rows, or they would not fit.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import LMDB, MANAGER, Way, at_most, broke, run
from surroundings import spread

FROZEN = Way("frozen")
HEAP = Way("heap")
FILES = [LMDB, Way("sqlite"), Way("shelve")]
OPERATIONS = {
    "str key, few": [FROZEN, HEAP, *FILES, MANAGER],
    "str key, many": [FROZEN, HEAP, LMDB],
    "long text": [FROZEN, HEAP],
    "get()": [FROZEN, HEAP],
    "list item": [FROZEN, HEAP],
    "row's number": [FROZEN, HEAP],
    "row's number, many": [FROZEN],
    "row's text": [FROZEN, HEAP],
    "field of a row in hand": [FROZEN, HEAP],
    "all items": [FROZEN, HEAP],
}
# What has to be shown: the most that it may cost in terms of the builtin.
MOST = {
    "str key, few": 2.5,
    "str key, many": 2.5,
    "row's number": 3.0,
    "row's number, many": 3.0,
    "row's text": 3.0,
}
PICKLE = Way("pickle")
# Some 1 GB in a file.
ROWS = 5_000_000
# Of a pickle, of which each reader has a copy.
PART = 20
MOST_START_MS = 100.0
MOST_COPIES = 1.1


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=0.5, help="of a measurement [0.5]")
    made.add_argument("--rows", type=int, default=ROWS, help=f"[{ROWS:,}]")
    made.add_argument("--readers", type=int, default=8, help="[8]")
    made.add_argument("--operation", choices=OPERATIONS, action="append", help="instead of all")
    options = parse(made)
    if options.quick:
        options.seconds, options.rows = 0.1, min(options.rows, 100_000)
    report(options, ["ungil", "lmdb"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each operation, and one for the readers."""
    for operation in options.operation or OPERATIONS:

        def measure(way: Way, operation: str = operation) -> Measured:
            words = (operation, way.name, options.seconds)
            return run(options.python, "frozen_operation", *words)

        runs = interleave(operation, OPERATIONS[operation], measure, options)
        yield runs, _operation_table(runs)
    if not options.operation:

        def readers(way: Way) -> Measured:
            rows = options.rows if way == FROZEN else options.rows // PART
            return run(options.python, "frozen_readers", way.name, rows, options.readers)

        options.rounds = min(options.rounds, 3)
        runs = interleave(f"{options.readers} readers", [FROZEN, PICKLE], readers, options)
        yield runs, _reader_table(runs)


def _loop_ratio(measured: Measured) -> float:
    return measured["loop_ratio"]


def _operation_table(runs: Runs) -> Table:
    """What an operation costs."""
    table = columns(
        f"{runs.setting}: the builtin's in the same loop is 1",
        *("", "ns in the loop", "builtin ns", "empty loop", "ratio", "of the loops"),
    )
    for way in OPERATIONS[runs.setting]:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        figures = ("loop_ns", "builtin_loop_ns", "empty_ns")
        table.add_row(
            way.name,
            *(f"{runs.median(way, lambda m, f=f: m[f]):,.1f}" for f in figures),
            spread(runs.each(way, lambda measured: measured["ratio"])),
            f"{runs.median(way, _loop_ratio):.2f}",
        )
    return table


def _copies(measured: Measured) -> float:
    """What opening and reading has added to the memory of all readers, in files."""
    return (measured["pss"] - measured["before"]) / measured["file"]


def _reader_table(runs: Runs) -> Table:
    """Megabytes, milliseconds and seconds."""
    names = ("file", "objects", "made", "before", "pss", "rss", "start_ms", "read_s")
    table = columns(
        f"{runs.setting}: megabytes; a pickle of {PART} times fewer rows",
        *("", "the file", "maker's objects", "maker's peak", "PSS of all readers before", "after"),
        *("greatest RSS", "start ms", "reading s"),
    )
    for way in (FROZEN, PICKLE):
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        medians = [runs.median(way, lambda measured, f=f: measured[f]) for f in names]
        table.add_row(way.name, *(f"{median:,.1f}" for median in medians))
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 18 asks for."""
    for runs in taken:
        name = runs.setting
        if (why := broke(runs, FROZEN)) is not None:
            yield Target(name, False, f"cannot be measured: {why}")
        elif name in MOST:
            claim = f"{name}: times the builtin in the same loop"
            yield at_most(claim, MOST[name], runs.each(FROZEN, _loop_ratio))
        elif name.endswith("readers"):
            yield at_most(
                f"{name}: copies of the file that they add to their memory,",
                MOST_COPIES,
                runs.each(FROZEN, _copies),
            )
            starts = runs.each(FROZEN, lambda measured: measured["start_ms"])
            yield at_most(f"{name}: milliseconds to the first row", MOST_START_MS, starts)


if __name__ == "__main__":
    main()
