"""What a policy, or a standby, costs a program of one thread, which shares the GIL with nobody.

    python bench/single_thread.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Three programs of a fixed amount of work: one never lets go of the GIL, one does around each
`os.stat`, and one around the cheapest call there is, millions of times a second, as no program does
that has something to do. CPU time as a ratio to the bare run of the same round. `bare again` is the
bare program a second time: as much as it differs from 1 is noise.
"""

import argparse
import statistics
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import BARE_AGAIN, BATCH, FOLDER, INTERACTIVE, STANDBY, STOCK, Variant
from rich.table import Table
from sampling import sample
from surroundings import spread

VARIANTS = [STOCK, BARE_AGAIN, INTERACTIVE, BATCH, STANDBY]
# Program and its count of work in a quick run.
PROGRAMS = {"one_cpu_thread": 100_000, "stat_switches": 50_000, "null_switches": 200_000}
MOST_COST = {INTERACTIVE: 1.01, STANDBY: 1.001}


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=31))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each program."""
    for program, little in PROGRAMS.items():
        words = [options.python, str(FOLDER / f"{program}.py")]
        words += [str(little)] if options.quick else []

        def measure(variant: Variant, words: list[str] = words) -> Measured:
            return vars(sample(words, variant.environment()))

        runs = interleave(program, VARIANTS, measure, options)
        yield runs, _table(runs)


def _cpu(measured: Measured) -> float:
    """CPU seconds of the work."""
    return measured["cpu_s"]


def _start(measured: Measured) -> float:
    """CPU seconds of the rest: start and end of the interpreter and of the hook in it."""
    return measured["tree_cpu_s"] - measured["cpu_s"]


def _table(runs: Runs) -> Table:
    """CPU time of the work and of the start."""
    releases = runs.rounds[0][STOCK.name]["releases"] / runs.median(STOCK, _cpu)
    table = columns(
        f"{runs.setting}: {releases:,.0f} releases of the GIL per second",
        *("", "CPU time of the work", "ratio to stock", "CPU time of the start in ms"),
    )
    for variant in VARIANTS:
        table.add_row(
            variant.name,
            f"{runs.median(variant, _cpu):.3f} s",
            spread(runs.ratios(variant, STOCK, _cpu)),
            f"{1000 * runs.median(variant, _start):.1f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """A program of a single thread costs as much as without."""
    for runs in taken:
        noise = spread(runs.ratios(BARE_AGAIN, STOCK, _cpu))
        for variant, most in MOST_COST.items():
            ratios = runs.ratios(variant, STOCK, _cpu)
            yield Target(
                f"{runs.setting}: CPU time of {variant.name} at most {most} of stock's",
                statistics.median(ratios) <= most,
                f"{spread(ratios)}, bare again {noise}",
            )


if __name__ == "__main__":
    main()
