"""How many frames a GUI's main thread misses beside two threads that compute.

    python bench/frames.py [--rounds N] [--python PATH] [--json FILE] [--quick]

The main thread wakes 60 times a second and draws for 1 to 2 ms. `missed`: not ready when the next
frame is due, or not begun at all. `late`: begun more than 2 ms after it was due. Work is that of
all threads, in calls of a fixed function, as a ratio to stock's of the same round.
"""

import argparse
from collections.abc import Iterator

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
from working import pace, work

VARIANTS = [STOCK, *INTERVALS, INTERACTIVE]
THREADS = 2
PERIOD_MS = 1000 / 60
LATE_MS = 2.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=10.0, help="of a measurement [10]")
    options = parse(made)
    if options.quick:
        options.seconds = 1.0
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """One setting."""

    def measure(variant: Variant) -> Measured:
        words = ["--threads", THREADS, "--seconds", options.seconds]
        return run(variant, options.python, "frames", words)

    runs = interleave(f"60 frames/s, {THREADS} computing threads", VARIANTS, measure, options)
    yield runs, _table(runs)


def _missed(measured: Measured) -> float:
    """The share of the frames that were not ready before the next was due."""
    in_time = sum(ready_ms <= PERIOD_MS for ready_ms in measured["ready_ms"])
    return 1 - in_time / measured["frames"]


def _late(measured: Measured) -> float:
    """The share of the frames that did not begin soon after they were due."""
    in_time = sum(began_ms <= LATE_MS for began_ms in measured["began_ms"])
    return 1 - in_time / measured["frames"]


def _table(runs: Runs) -> Table:
    """Frames, and the work beside them."""
    table = columns(
        f"{runs.setting}: frames in %, delays of those drawn in ms, work as a ratio to stock's",
        *("", "missed", "late", "began p50", "p99", "max"),
        *("work per CPU second", "work per second"),
    )
    for variant in VARIANTS:
        began_ms = runs.pooled(variant, "began_ms")
        table.add_row(
            variant.name,
            *(spread([100 * share for share in runs.each(variant, of)]) for of in (_missed, _late)),
            *(f"{quantile(began_ms, share):.2f}" for share in (0.5, 0.99, 1.0)),
            *(spread(runs.ratios(variant, STOCK, of)) for of in (work, pace)),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The issue sets no number; fewer than stock is what the question was about."""
    for runs in taken:
        for of, what in ((_missed, "missed"), (_late, "late")):
            here, stock = (100 * runs.median(variant, of) for variant in (INTERACTIVE, STOCK))
            seen = f"{here:.1f} % to {stock:.1f} %"
            yield Target(f"{runs.setting}: fewer frames {what} than stock", here < stock, seen)


if __name__ == "__main__":
    main()
