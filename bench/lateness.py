"""How late a thread wakes up that sleeps 2 ms at a time beside threads that compute, not pinned.

    python bench/lateness.py [--rounds N] [--python PATH] [--json FILE] [--quick]

The kernel places all threads, as it does in most programs. So this measures what it adds: a thread
that was woken may have to wait for the processor on which another computes. `own slices` is
`interactive` without what it asks of the kernel (`UNGIL_SLICE=own`); the difference is what that is
worth, and what it costs the threads that compute.

`p99` is that of all sleeps of all rounds; `of a round` has the median of the rounds' own, and the
least and the greatest. Work is calls of a fixed function, as a ratio to `own slices` of the same
round.
"""

import argparse
from collections.abc import Iterator, Sequence

from interleaving import (
    Measured,
    Runs,
    Target,
    columns,
    interleave,
    parse,
    parser,
    quantile,
    report,
)
from peers import INTERACTIVE, INTERVALS, STOCK, Variant, run
from rich.table import Table
from surroundings import spread
from working import kept, pace, switches, work

OWN_SLICES = Variant("own slices", policy="interactive", slices="own")
PEERS = [STOCK, Variant("interval 1 ms", interval_s=1e-3), *INTERVALS]
VARIANTS = [*PEERS, OWN_SLICES, INTERACTIVE]
THREADS = [4, 16]
PERIOD_S = 0.002
# What has to be shown.
MOST_P50_MS = 0.2
MOST_OF_PEER = 0.5
LEAST_WORK = 0.97


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=9)
    made.add_argument("--seconds", type=float, default=3.0, help="of a measurement [3]")
    made.add_argument("--threads", type=int, action="append", help="that compute [4 16]")
    options = parse(made)
    if options.quick:
        options.seconds = 0.5
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each number of threads."""
    for threads in options.threads or THREADS:
        words: list[object] = ["--threads", threads, "--seconds", options.seconds]
        words += ["--period", PERIOD_S]

        def measure(variant: Variant, words: list[object] = words) -> Measured:
            return run(variant, options.python, "lateness", words)

        runs = interleave(f"{threads} computing threads", VARIANTS, measure, options)
        yield runs, _table(runs)


def _slice_ms(measured: Measured) -> float:
    """The slice of the thread that slept, in the end."""
    return measured["slice_ns"] / 1e6


def _p99(measured: Measured) -> float:
    """Of one measurement."""
    return quantile(sorted(measured["late_ms"]), 0.99)


def _p(runs: Runs, variant: Variant, share: float) -> float:
    """A quantile over all rounds, in milliseconds."""
    return quantile(runs.pooled(variant, "late_ms"), share)


def _table(runs: Runs) -> Table:
    """Lateness, and the work beside it."""
    table = columns(
        f"{runs.setting}: how late in ms, work as a ratio to own slices'",
        *("", "sleeps", "p50", "p90", "p99", "max", "p99 of a round"),
        *("work per CPU second", "work per second", "switches/s", "slice ms"),
    )
    for variant in VARIANTS:
        late = runs.pooled(variant, "late_ms")
        table.add_row(
            variant.name,
            str(len(late)),
            *(f"{quantile(late, share):.2f}" for share in (0.5, 0.9, 0.99, 1.0)),
            spread(runs.each(variant, _p99)),
            *(spread(runs.ratios(variant, OWN_SLICES, of)) for of in (work, pace)),
            f"{runs.median(variant, switches):.0f}",
            f"{runs.median(variant, _slice_ms):.1f}",
        )
    return table


def _targets(taken: Sequence[Runs]) -> Iterator[Target]:
    """What `interactive` has to show."""
    for runs in taken:
        p50, p99 = _p(runs, INTERACTIVE, 0.5), _p(runs, INTERACTIVE, 0.99)
        yield Target(
            f"{runs.setting}: p50 at most {MOST_P50_MS} ms", p50 <= MOST_P50_MS, f"{p50:.3f} ms"
        )
        best = min(PEERS, key=lambda variant: _p(runs, variant, 0.99))
        part = p99 / _p(runs, best, 0.99)
        yield Target(
            f"{runs.setting}: p99 at most {MOST_OF_PEER} of the best interval's",
            part <= MOST_OF_PEER,
            f"{part:.2f} of that of {best.name}, {p99:.2f} ms",
        )
        whose = "that with own slices"
        yield from kept(runs, INTERACTIVE, OWN_SLICES, LEAST_WORK, runs.setting, whose)


if __name__ == "__main__":
    main()
