"""Whether many threads that wait often starve one that computes, and the reverse.

    python bench/flood.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Of the wall time, each thread's share of CPU time; its bound is 1 / threads. `least computing` is
that of the worst off of the computing threads, over the bound: 1 is a fair share, 0 is starved.
What the threads that wait want less than, they cannot be owed: in the reverse, one thread wants a
fifth of the time beside 16 that compute, and is owed the bound.
"""

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import FAIR, INTERACTIVE, INTERVALS, STOCK, Variant, run
from rich.table import Table
from surroundings import spread

VARIANTS = [STOCK, INTERVALS[-1], INTERACTIVE, FAIR]
# A share below the bound by less is what handing over costs.
LEAST_OF_BOUND = 0.9


@dataclass(frozen=True)
class Mix:
    """How many threads of which kind."""

    computing: int
    waiting: int
    kind: str
    """Of bench/programs/flood.py."""

    def name(self) -> str:
        """In words."""
        return f"{self.computing} computing threads, {self.waiting} {self.kind}"

    def bound(self) -> float:
        """The share of each thread, if all want as much as they can get."""
        return 1 / (self.computing + self.waiting)


MIXES = [
    *(Mix(computing, 32, kind) for kind in ("tiny", "greedy") for computing in (1, 4)),
    Mix(16, 1, "part"),
]


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=5.0, help="of a measurement [5]")
    options = parse(made)
    if options.quick:
        options.seconds = 1.0
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each mix."""
    for mix in MIXES:
        words: list[object] = ["--compute", mix.computing, "--wait", mix.waiting]
        words += ["--kind", mix.kind, "--seconds", options.seconds]

        def measure(variant: Variant, words: list[object] = words) -> Measured:
            return run(variant, options.python, "flood", words)

        runs = interleave(mix.name(), VARIANTS, measure, options)
        yield runs, _table(mix, runs)


def _least(measured: Measured) -> float:
    """The share of the computing thread that got least."""
    return min(measured["computing"])


def _computing(measured: Measured) -> float:
    """The share of all computing threads."""
    return sum(measured["computing"])


def _waiting(measured: Measured) -> float:
    """The share of all that wait often."""
    return sum(measured["waiting"])


def _switches(measured: Measured) -> float:
    """Context switches per second."""
    return measured["switches"]


def _table(mix: Mix, runs: Runs) -> Table:
    """Shares of both kinds."""
    table = columns(
        f"{runs.setting}: CPU time over wall time, bound {mix.bound():.3f} a thread",
        *("", "least computing / bound", "all computing", "all waiting", "switches/s"),
    )
    for variant in VARIANTS:
        table.add_row(
            variant.name,
            spread([share / mix.bound() for share in runs.each(variant, _least)]),
            *(f"{runs.median(variant, of):.3f}" for of in (_computing, _waiting)),
            f"{runs.median(variant, _switches):.0f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """Nobody is starved, whichever kind has the majority."""
    for mix, runs in zip(MIXES, taken, strict=True):
        of = _waiting if mix.kind == "part" else _least
        shares = [share / mix.bound() for share in runs.each(INTERACTIVE, of)]
        who = "the one that waits" if mix.kind == "part" else "each computing thread"
        yield Target(
            f"{runs.setting}: {who} gets its bound",
            statistics.median(shares) >= LEAST_OF_BOUND,
            f"{spread(shares)} of it",
        )


if __name__ == "__main__":
    main()
