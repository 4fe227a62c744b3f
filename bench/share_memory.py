"""What memory eight workers take that read all of a table of some 500 MB, and how long they do.

    python bench/share_memory.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Workers are forked when the table is there, and read every row (bench/programs/shared_table.py).
`plain dict` is what a fork gives for nothing: its memory is shared until it is written to, and
looking at a Python object writes its reference count. `Manager` has the table in a process of its
own, so its workers read only one row of a hundred. PSS divides a page by the number of processes
that have it: the sum is what the machine gives. RSS counts it in each.

Only a first reading is timed, in which a plain dict's pages are copied; later ones are faster with
a plain dict. Where the table fits into memory as often as there are workers, that is the better
answer.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import MANAGER, UNGIL, Way, at_most, broke, run
from surroundings import spread

PLAIN = Way("plain dict")
WAYS = [UNGIL, PLAIN, MANAGER]
# Some 500 MB in a shared dict.
ROWS = 2_200_000
MOST_GROWTH = 0.10


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=3)
    made.add_argument("--rows", type=int, default=ROWS, help=f"[{ROWS:,}]")
    made.add_argument("--workers", type=int, default=8, help="[8]")
    options = parse(made)
    if options.quick:
        options.rows = min(options.rows, 100_000)
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """One setting."""

    def measure(way: Way) -> Measured:
        return run(options.python, "shared_table", way.name, options.rows, options.workers)

    setting = f"{options.rows:,} rows, {options.workers} workers"
    runs = interleave(setting, WAYS, measure, options)
    yield runs, _table(runs)


def _growth(measured: Measured) -> float:
    """Of all processes by the reading, as a part of the table."""
    return (measured["after"] - measured["before"]) / measured["table"]


def _table(runs: Runs) -> Table:
    """Megabytes and seconds."""
    table = columns(
        f"{runs.setting}: megabytes",
        *("", "the table", "PSS of all before", "after the reading", "tables more"),
        *("greatest peak RSS", "sum of peak RSS", "reading s"),
    )
    for way in WAYS:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        table.add_row(
            way.name,
            *(
                f"{runs.median(way, lambda measured, f=f: measured[f]):,.0f}"
                for f in ("table", "before", "after")
            ),
            spread(runs.each(way, _growth)),
            f"{runs.median(way, lambda measured: max(measured['peaks'])):,.0f}",
            f"{runs.median(way, lambda measured: sum(measured['peaks'])):,.0f}",
            f"{runs.median(way, lambda measured: measured['wall_s']):.2f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 4 asks for."""
    for runs in taken:
        if (why := broke(runs, UNGIL)) is not None:
            yield Target(runs.setting, False, f"cannot be measured: {why}")
            continue
        claim = f"{runs.setting}: one copy; what the reading adds, as a part of it,"
        yield at_most(claim, MOST_GROWTH, runs.each(UNGIL, _growth))


if __name__ == "__main__":
    main()
