"""How long a reader of shared objects takes while another process has a transaction.

    python bench/share_reading.py [--rounds N] [--python PATH] [--json FILE] [--quick]

One process reads `root["b"]["y"]` all the time; the other one has transactions of 20 ms that read
the same, that write elsewhere, or that write the same, which a reader of ungil's waits for and one
of lmdb's does not. Times include the two readings of the clock.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import LMDB, UNGIL, Way, broke, run
from surroundings import spread

OTHERS = ["nothing", "reads", "writes elsewhere", "writes here"]
WAYS = [UNGIL, LMDB]
# What a transaction of the other process may cost a reader that need not wait for it.
TIMES_ALONE = 2.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--seconds", type=float, default=1.0, help="of a measurement [1]")
    options = parse(made)
    if options.quick:
        options.seconds = 0.3
    report(options, ["ungil", "lmdb"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each library."""
    for way in WAYS:
        others = [Way(other) for other in OTHERS]

        def measure(other: Way, way: Way = way) -> Measured:
            return run(options.python, "shared_reading", way.name, other.name, options.seconds)

        runs = interleave(way.name, others, measure, options)
        yield runs, _table(runs)


def _median(measured: Measured) -> float:
    return measured["median_ns"]


def _reads(measured: Measured) -> float:
    return measured["reads"]


def _longest(measured: Measured) -> float:
    return measured["longest_ms"]


def _table(runs: Runs) -> Table:
    """The median and the longest read, and how many there were."""
    table = columns(
        f"{runs.setting}: a read of two levels, while another process has transactions of 20 ms",
        *("", "median ns", "of alone", "longest ms", "reads"),
    )
    alone = Way("nothing")
    for other in map(Way, OTHERS):
        if (why := broke(runs, other)) is not None:
            table.add_row(other.name, f"broke: {why}")
            continue
        times = "" if broke(runs, alone) else spread(runs.ratios(other, alone, _median))
        longest = spread(runs.each(other, _longest))
        reads = f"{runs.median(other, _reads):,.0f}"
        table.add_row(other.name, f"{runs.median(other, _median):,.0f}", times, longest, reads)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 13 asks for (H4)."""
    for runs in taken:
        if runs.setting != UNGIL.name:
            continue
        for other in map(Way, OTHERS[1:3]):
            seen = runs.ratios(other, Way("nothing"), _median)
            median = sorted(seen)[len(seen) // 2]
            claim = f"beside one that {other.name}: at most {TIMES_ALONE:g} times alone"
            yield Target(claim, median <= TIMES_ALONE, spread(seen))


if __name__ == "__main__":
    main()
