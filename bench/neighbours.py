"""What a policy costs and gains while other processes want the same processors.

    python bench/neighbours.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Threads compute, one answers datagrams, and 0, 1 or 2 other processes compute beside them. A client
asks at fixed times (open loop), or a fixed time after each answer (closed loop). Work is calls of a
fixed function, by the CPU time and by the wall time of the process, as a ratio to stock's of the
same round. Nobody is pinned: whom the kernel runs is what is looked at.
"""

import argparse
import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
from peers import FAIR, INTERACTIVE, INTERVALS, STOCK, Variant, client, result, running
from rich.table import Table
from surroundings import spread
from working import kept, pace, work

VARIANTS = [STOCK, INTERVALS[-1], INTERACTIVE, FAIR]
NEIGHBOURS = [0, 1, 2]
THREADS = [1, 4, 16]
LOOPS = ["open", "closed"]
LEAST_WORK = 0.95


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--rate", type=float, default=100.0, help="requests a second [100]")
    made.add_argument("--seconds", type=float, default=2.0, help="of a measurement [2]")
    made.add_argument("--neighbours", type=int, action="append", help="that compute [0 1 2]")
    made.add_argument("--threads", type=int, action="append", help="that compute [1 4 16]")
    made.add_argument("--loop", choices=LOOPS, help="instead of both")
    options = parse(made)
    if options.quick:
        options.seconds = 0.5
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each loop, number of neighbours, and number of threads."""
    for loop in [options.loop] if options.loop else LOOPS:
        for neighbours in options.neighbours or NEIGHBOURS:
            for threads in options.threads or THREADS:
                setting = f"{loop} loop, {threads} threads beside {neighbours} processes"
                measure = functools.partial(_measure, options, loop, neighbours, threads)
                runs = interleave(setting, VARIANTS, measure, options)
                yield runs, _table(runs)


@contextmanager
def _burning(count: int) -> Iterator[None]:
    """So many processes compute."""
    words = [sys.executable, "-S", "-c", "print(flush=True)\nwhile True: pass"]
    burning = [subprocess.Popen[bytes](words, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in burning:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in burning:
            process.kill()
            with process:
                pass


def _measure(
    options: argparse.Namespace, loop: str, neighbours: int, threads: int, variant: Variant
) -> Measured:
    """One run of the server, its client, and the neighbours."""
    with (
        running(variant, options.python, "echo", ["--threads", threads]) as server,
        _burning(neighbours),
    ):
        load = [server.says()["port"], "--rate", options.rate, "--seconds", options.seconds]
        delays = client("echo_client", [*load, *(["--closed"] if loop == "closed" else [])])
        return {**result(variant, server), **delays}


def _part(measured: Measured) -> float:
    """Processors that the process had, on average."""
    return measured["cpu_s"] / measured["wall_s"]


def _table(runs: Runs) -> Table:
    """Work, and the delays beside it."""
    table = columns(
        f"{runs.setting}: work as a ratio to stock's, delay in ms",
        *("", "work per CPU second", "work per second", "processors", "p50", "p99", "n"),
    )
    for variant in VARIANTS:
        delays = runs.pooled(variant, "from_due_ms")
        table.add_row(
            variant.name,
            *(spread(runs.ratios(variant, STOCK, of)) for of in (work, pace)),
            f"{runs.median(variant, _part):.2f}",
            *(f"{quantile(delays, share):.2f}" for share in (0.5, 0.99)),
            str(len(runs.each(variant, work))),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The default policy takes no work away, by either clock."""
    for runs in taken:
        yield from kept(runs, INTERACTIVE, STOCK, LEAST_WORK, runs.setting, "stock's")


if __name__ == "__main__":
    main()
