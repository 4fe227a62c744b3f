"""How evenly threads that only compute share the GIL, and what the sharing costs.

    python bench/fairness.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Equal threads compute for a fixed time. `unfair` is the most that a thread had, or did, less the
least, over the mean. The target is that no thread's CPU time, which is what a scheduler can share
out, is further than 5 % from the mean; how much a thread gets done in it also depends on how fast
its processor was just then. Work is calls of a fixed
function, by the CPU time and by the wall time of the run, as a ratio to stock's of the same round.
Handoffs are counted by the threads themselves.
"""

import argparse
import statistics
from collections.abc import Iterator
from functools import partial

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import BATCH, FAIR, INTERACTIVE, INTERVALS, STOCK, Variant, run
from rich.table import Table
from surroundings import spread

VARIANTS = [STOCK, INTERVALS[-1], FAIR, INTERACTIVE, BATCH]
THREADS = [2, 4, 8, 16]
MOST_OFF = 0.05
# What two runs of the same program differ by even so.
AS_MUCH = 0.995


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=5.0, help="of a measurement [5]")
    made.add_argument("--threads", type=int, action="append", help="[2 4 8 16]")
    options = parse(made)
    if options.quick:
        options.seconds = 1.0
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each number of threads."""
    for threads in options.threads or THREADS:
        words = ["--threads", threads, "--seconds", options.seconds]

        def measure(variant: Variant, words: list[object] = words) -> Measured:
            return run(variant, options.python, "fairness", words)

        runs = interleave(f"{threads} computing threads", VARIANTS, measure, options)
        yield runs, _table(runs)


def _unfair(measured: Measured, *, of: str) -> float:
    """The range of what the threads had or did over its mean, in percent."""
    each = measured[of]
    return 100 * (max(each) - min(each)) / statistics.mean(each)


def _off(measured: Measured) -> float:
    """How far the thread that is furthest from the mean is from it, as a part of it."""
    mean = statistics.mean(measured["held_s"])
    return max(abs(held_s - mean) for held_s in measured["held_s"]) / mean


def _per_second(measured: Measured, *, of: str) -> float:
    """Of wall time."""
    return measured[of] / measured["wall_s"]


def _work(measured: Measured) -> float:
    """Calls per second of CPU time."""
    return sum(measured["calls"]) / measured["cpu_s"]


def _pace(measured: Measured) -> float:
    """Calls per second of wall time."""
    return sum(measured["calls"]) / measured["wall_s"]


_handoffs = partial(_per_second, of="handoffs")
_switches = partial(_per_second, of="context_switches")


def _table(runs: Runs) -> Table:
    """Fairness, work, and what it took."""
    table = columns(
        f"{runs.setting}: work as a ratio to stock's",
        *("", "unfair % (CPU time)", "(work)", "work per CPU second", "work per second"),
        *("handoffs/s", "context switches/s"),
    )
    for variant in VARIANTS:
        table.add_row(
            variant.name,
            *(spread(runs.each(variant, partial(_unfair, of=of))) for of in ("held_s", "calls")),
            *(spread(runs.ratios(variant, STOCK, of)) for of in (_work, _pace)),
            *(f"{runs.median(variant, of):.0f}" for of in (_handoffs, _switches)),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What `fair`, `interactive` and `batch` have to show."""
    for runs in taken:
        for variant in (FAIR, INTERACTIVE):
            off = runs.each(variant, _off)
            yield Target(
                f"{runs.setting}, {variant.name}: shares within {MOST_OFF:.0%} of an equal one",
                statistics.median(off) <= MOST_OFF,
                f"{spread([100 * value for value in off])} %",
            )
        for of, unit in ((_work, "CPU second"), (_pace, "second")):
            ratios = runs.ratios(BATCH, STOCK, of)
            yield Target(
                f"{runs.setting}, batch: as much work per {unit} as stock",
                statistics.median(ratios) >= AS_MUCH,
                spread(ratios),
            )
        handoffs = runs.ratios(BATCH, STOCK, _handoffs)
        yield Target(
            f"{runs.setting}, batch: fewer handoffs than stock",
            max(handoffs) < 1,
            f"{spread(handoffs)} of stock's",
        )


if __name__ == "__main__":
    main()
