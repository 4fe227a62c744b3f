"""How long a thread that answers datagrams waits for the GIL beside threads that compute.

    python bench/io_latency.py [--rounds N] [--python PATH] [--json FILE] [--quick]

A client in a process of its own sends datagrams at fixed times to an echo thread (open loop). A
delay is counted from when the request was due, also if its predecessor was still unanswered; a
server that falls behind shows as `served` below 1, and its delays then grow with the length of the
run. The work that the computing threads do meanwhile stands beside each delay: calls of a fixed
function per second of the process's CPU time, divided by stock's of the same round, and the same
by wall time.

`pinned`: computing threads on one core, echo thread and client on another. `unpinned`: the kernel
places them, and on two cores it leaves a thread that was woken behind a computing one for up to
4 ms although the other core is idle. No scheduler of the GIL can help that.
"""

import argparse
import functools
import os
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
from peers import BATCH, FAIR, INTERACTIVE, INTERVALS, STOCK, Variant, client, result, running
from rich.table import Table
from surroundings import spread
from working import kept, pace, switches, work

VARIANTS = [STOCK, *INTERVALS, INTERACTIVE, FAIR, BATCH]
THREADS = [1, 2, 4, 8, 16]
# What has to be shown, of `pinned`.
MOST_P50_MS = 0.3
MOST_GROWTH = 2.0
LEAST_BELOW_STOCK = 50.0
MOST_OF_INTERVAL = 0.5
FROM_THREADS = 4
LEAST_WORK = 0.97
# Fewer are not called overloaded: the last request of a run may miss its end.
SERVED = 0.99


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--rate", type=float, default=100.0, help="requests a second [100]")
    made.add_argument("--seconds", type=float, default=3.0, help="of a measurement [3]")
    made.add_argument("--threads", type=int, action="append", help="that compute [1 2 4 8 16]")
    made.add_argument("--placement", choices=["pinned", "unpinned"], help="instead of both")
    options = parse(made)
    if options.quick:
        options.seconds = 0.5
    report(options, ["ungil"], _sections(options), functools.partial(_targets, options.threads))


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each placement and number of threads."""
    for placement in [options.placement] if options.placement else ["pinned", "unpinned"]:
        for threads in options.threads or THREADS:
            measure = functools.partial(_measure, options, placement == "pinned", threads)
            runs = interleave(_setting(placement, threads), VARIANTS, measure, options)
            yield runs, _table(runs)


def _setting(placement: str, threads: int) -> str:
    return f"{placement}, {threads} computing threads"


def _measure(options: argparse.Namespace, pinned: bool, threads: int, variant: Variant) -> Measured:
    """One run of the server and its client."""
    cores = sorted(os.sched_getaffinity(0))
    first, last = cores[0], cores[-1]
    words = ["--threads", threads, *(["--cores", first, last] if pinned else [])]
    with running(variant, options.python, "echo", words) as server:
        load = [server.says()["port"], "--rate", options.rate, "--seconds", options.seconds]
        delays = client("echo_client", load + (["--core", last] if pinned else []))
        return {**result(variant, server), **delays}


def _served(runs: Runs, variant: Variant) -> float:
    """The share of the requests that was answered."""
    return len(runs.pooled(variant, "from_sent_ms")) / len(runs.pooled(variant, "from_due_ms"))


def _p(runs: Runs, variant: Variant, share: float) -> float:
    """A quantile of the delays from due time, in milliseconds, over all rounds."""
    return quantile(runs.pooled(variant, "from_due_ms"), share)


def _table(runs: Runs) -> Table:
    """Delays, and the work beside them."""
    table = columns(
        f"{runs.setting}: delay from due time in ms, work as a ratio to stock's",
        *("", "p50", "p90", "p99", "max", "p99 sent", "served", "stock p99 /"),
        *("work per CPU second", "work per second", "switches/s"),
    )
    for variant in VARIANTS:
        delays, sent = (runs.pooled(variant, f"from_{since}_ms") for since in ("due", "sent"))
        served = _served(runs, variant)
        table.add_row(
            variant.name,
            *(f"{quantile(delays, share):.2f}" for share in (0.5, 0.9, 0.99, 1.0)),
            f"{quantile(sent, 0.99):.2f}",
            f"{served:.2f}" + ("" if served >= SERVED else " OVERLOAD"),
            f"{_p(runs, STOCK, 0.99) / quantile(delays, 0.99):.1f}",
            *(spread(runs.ratios(variant, STOCK, of)) for of in (work, pace)),
            f"{runs.median(variant, switches):.0f}",
        )
    return table


def _targets(threads: Sequence[int] | None, taken: list[Runs]) -> Iterator[Target]:
    """What `interactive` has to show, pinned."""
    by_setting = {runs.setting: runs for runs in taken}
    pinned = {
        number: by_setting[_setting("pinned", number)]
        for number in threads or THREADS
        if _setting("pinned", number) in by_setting
    }
    for number, runs in pinned.items():
        p50, p99 = _p(runs, INTERACTIVE, 0.5), _p(runs, INTERACTIVE, 0.99)
        yield Target(
            f"N={number}: p50 at most {MOST_P50_MS} ms", p50 <= MOST_P50_MS, f"{p50:.3f} ms"
        )
        if number >= FROM_THREADS:
            # An overloaded server's delay grows with the run; what a request that was sent waits
            # does not, and is what stock can be held to.
            stock = quantile(runs.pooled(STOCK, "from_sent_ms"), 0.99)
            below = stock / p99
            yield Target(
                f"N={number}: p99 {LEAST_BELOW_STOCK:.0f} times below stock's from the sending",
                below >= LEAST_BELOW_STOCK,
                f"{below:.1f} times, {p99:.2f} ms to {stock:.2f} ms",
            )
            best = min(INTERVALS, key=lambda variant: _p(runs, variant, 0.99))
            part = p99 / _p(runs, best, 0.99)
            yield Target(
                f"N={number}: p99 at most {MOST_OF_INTERVAL} of the best interval's",
                part <= MOST_OF_INTERVAL,
                f"{part:.2f} of that of {best.name}",
            )
        yield from kept(runs, INTERACTIVE, STOCK, LEAST_WORK, f"N={number}", "stock's")
    if {1, 16} <= pinned.keys():
        growth = _p(pinned[16], INTERACTIVE, 0.5) / _p(pinned[1], INTERACTIVE, 0.5)
        yield Target(
            f"p50 at N=16 at most {MOST_GROWTH:.0f} times that at N=1",
            growth <= MOST_GROWTH,
            f"{growth:.2f} times",
        )


if __name__ == "__main__":
    main()
