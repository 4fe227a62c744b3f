"""How long small requests to a web server take while other requests compute.

    python bench/server.py [--server NAME] [--rounds N] [--python PATH] [--json FILE] [--quick]

Flask behind waitress and behind cheroot, 16 threads each. A load generator in a process of its own,
on another core, sends small requests and computing ones at fixed rates (open loop); delays count
from when a request was due. A computing request is a fixed number of calls of a fixed function, so
the work to be done is the same under every scheduler: who serves the small ones first makes the
others wait, and that stands beside. `--busy` is the share of a core that the computing requests
need, by a calibration of this machine before the first round.
"""

import argparse
import functools
import os
import statistics
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
from peers import FOLDER, INTERACTIVE, INTERVALS, STOCK, Variant, client, result, running
from rich.table import Table
from sampling import sample
from surroundings import spread

VARIANTS = [STOCK, INTERVALS[-1], INTERACTIVE]
SERVERS = ["waitress", "cheroot"]
# What a computing request takes, alone.
BURN_S = 0.05
CALIBRATION_CALLS = 300_000
# The work of a run is fixed, so its CPU time tells what the scheduling cost.
MOST_CPU = 1.03


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--server", choices=SERVERS, help="instead of both")
    made.add_argument("--seconds", type=float, default=15.0, help="of a measurement [15]")
    made.add_argument("--small", type=float, default=50.0, help="requests a second [50]")
    made.add_argument("--busy", type=float, default=0.7, help="share of a core [0.7]")
    options = parse(made)
    if options.quick:
        options.seconds = 2.0
    report(options, ["ungil", "flask", *SERVERS], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each server."""
    words = [options.python, str(FOLDER / "one_cpu_thread.py"), str(CALIBRATION_CALLS)]
    calls = int(CALIBRATION_CALLS * BURN_S / sample(words, STOCK.environment()).cpu_s)
    rate = options.busy / BURN_S
    for server in [options.server] if options.server else SERVERS:
        measure = functools.partial(_measure, options, server, calls, rate)
        setting = f"{server}, {options.small:.0f} small and {rate:.0f} computing requests/s"
        runs = interleave(setting, VARIANTS, measure, options)
        yield runs, _table(runs)


def _measure(
    options: argparse.Namespace, server: str, calls: int, rate: float, variant: Variant
) -> Measured:
    """One run of the server and its client."""
    cores = sorted(os.sched_getaffinity(0))
    words = ["--server", server, "--core", cores[0]]
    with running(variant, options.python, "web", words) as started:
        load = [started.says()["port"], "--seconds", options.seconds, "--small", options.small]
        load += ["--burn", rate, "--calls", calls, "--core", cores[-1]]
        delays = client("web_client", load)
        started.end()
        return {**result(variant, started), **delays}


def _cpu(measured: Measured) -> float:
    """CPU seconds of the whole load."""
    return measured["cpu_s"]


def _throughput(measured: Measured) -> float:
    """Requests answered per second."""
    return (len(measured["small_ms"]) + len(measured["burn_ms"])) / measured["load_s"]


def _table(runs: Runs) -> Table:
    """Delays of both kinds, and what the load took."""
    table = columns(
        f"{runs.setting}: delay from due time in ms",
        *("", "small p50", "p90", "p99", "max", "computing p50", "p99", "max"),
        *("requests/s", "CPU time to stock's"),
    )
    for variant in VARIANTS:
        small_ms, burn_ms = (runs.pooled(variant, f"{kind}_ms") for kind in ("small", "burn"))
        table.add_row(
            variant.name,
            *(f"{quantile(small_ms, share):.2f}" for share in (0.5, 0.9, 0.99, 1.0)),
            *(f"{quantile(burn_ms, share):.1f}" for share in (0.5, 0.99, 1.0)),
            f"{runs.median(variant, _throughput):.1f}",
            spread(runs.ratios(variant, STOCK, _cpu)),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The issue sets no number: better than both peers, at no more CPU time than stock's."""
    for runs in taken:
        p99 = {variant: quantile(runs.pooled(variant, "small_ms"), 0.99) for variant in VARIANTS}
        for peer in VARIANTS[:-1]:
            here = p99[INTERACTIVE]
            yield Target(
                f"{runs.setting}: p99 of small ones below that of {peer.name}",
                here < p99[peer],
                f"{here:.2f} ms to {p99[peer]:.2f} ms",
            )
        ratios = runs.ratios(INTERACTIVE, STOCK, _cpu)
        yield Target(
            f"{runs.setting}: CPU time at most {MOST_CPU} of stock's",
            statistics.median(ratios) <= MOST_CPU,
            spread(ratios),
        )


if __name__ == "__main__":
    main()
