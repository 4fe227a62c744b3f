"""What a policy costs programs whose threads hand over to each other all the time.

    python bench/handovers.py [--rounds N] [--case NAME] [--python PATH] [--json FILE] [--quick]

Queues, pools, sockets, short threads: nobody computes for long, so nobody gains much by a
scheduler, and each switch too many is pure cost. CPU time, wall time and voluntary context switches
of the same amount of work, the first two as ratios to stock's of the same round.
"""

import argparse
import statistics
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import BATCH, FAIR, INTERACTIVE, INTERVALS, PRIORITY, STOCK, Variant, run
from rich.table import Table
from surroundings import spread

VARIANTS = [STOCK, INTERVALS[-1], INTERACTIVE, FAIR, BATCH, PRIORITY]
# Of bench/programs/handovers.py.
CASES = [
    "queue 50+50",
    "queue 4+4",
    "pool map",
    "socket pairs",
    "own socket pairs",
    "pipe",
    "start and join",
    "start and join 10",
    "to_thread",
    "sha256",
    "own locks",
]
MOST_COST = 1.10


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=9)
    made.add_argument("--case", action="append", choices=CASES, help="instead of all")
    made.add_argument("--scale", type=float, default=1.0, help="of the amount of work [1]")
    options = parse(made)
    if options.quick:
        options.scale = 0.1
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each case."""
    for case in options.case or CASES:

        def measure(variant: Variant, case: str = case) -> Measured:
            words = [case, "--scale", options.scale]
            return run(variant, options.python, "handovers", words)

        runs = interleave(case, VARIANTS, measure, options)
        yield runs, _table(runs)


def _cpu(measured: Measured) -> float:
    """CPU seconds of the work."""
    return measured["cpu_s"]


def _wall(measured: Measured) -> float:
    """Seconds that it took."""
    return measured["wall_s"]


def _voluntary(measured: Measured) -> float:
    """How often a thread went to sleep."""
    return measured["voluntary"]


def _table(runs: Runs) -> Table:
    """Cost, and the switches that explain it."""
    table = columns(
        f"{runs.setting}: stock took {runs.median(STOCK, _cpu):.3f} s of CPU time, "
        f"{runs.median(STOCK, _wall):.3f} s",
        *("", "CPU time", "wall time", "voluntary switches", "n"),
    )
    for variant in VARIANTS:
        switches = runs.each(variant, _voluntary)
        table.add_row(
            variant.name,
            *(spread(runs.ratios(variant, STOCK, of)) for of in (_cpu, _wall)),
            f"{statistics.median(switches):,.0f} ({min(switches):,.0f}-{max(switches):,.0f})",
            str(len(switches)),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The default policy costs next to nothing."""
    for runs in taken:
        ratios = runs.ratios(INTERACTIVE, STOCK, _cpu)
        yield Target(
            f"{runs.setting}: interactive's CPU time at most {MOST_COST:.2f} of stock's",
            statistics.median(ratios) <= MOST_COST,
            spread(ratios),
        )


if __name__ == "__main__":
    main()
