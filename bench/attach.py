"""What it takes to get into a process that runs, and what a policy does there.

    python bench/attach.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`policy`: delays of an echo thread beside four computing threads (as in io_latency.py, the kernel
places them), when the server was started under `ungil run`, and when it was given the policy while
it ran. `ways in`: how long it takes to begin a recording of that server, by ptrace and through the
control page of a standby, and for how long a thread stood still. What a standby costs meanwhile is
in single_thread.py.
"""

import argparse
import functools
import time
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
from peers import INTERACTIVE, STANDBY, STOCK, Program, Variant, client, result, running
from rich.table import Table

from ungil import _native
from ungil.recorder import new_recorder

ATTACHED = Variant("attached")
PTRACE = Variant("ptrace")
THREADS, RATE = 4, 100.0
POLICY, WAYS = "policy", "ways in"
# What has to be shown.
MOST_OF_STARTED = 1.25
MOST_WAKE_MS = 100.0
MOST_STOPPED_MS = 50.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=15)
    made.add_argument("--seconds", type=float, default=3.0, help="of load [3]")
    made.add_argument("--times", type=int, default=20, help="attached to a server [20]")
    made.add_argument("--setting", choices=[POLICY, WAYS], help="instead of both")
    options = parse(made)
    if options.quick:
        options.seconds, options.times = 0.5, 3
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    if options.setting in (None, POLICY):
        variants = [STOCK, INTERACTIVE, ATTACHED]
        runs = interleave(POLICY, variants, functools.partial(_delays, options), options)
        yield runs, _late(runs)
    if options.setting in (None, WAYS):
        variants = [PTRACE, STANDBY]
        runs = interleave(WAYS, variants, functools.partial(_entries, options), options)
        yield runs, _entered(runs)


def _delays(options: argparse.Namespace, variant: Variant) -> Measured:
    """One run of the server and its client."""
    with running(variant, options.python, "echo", ["--threads", THREADS]) as server:
        port = server.says()["port"]
        if variant is ATTACHED:
            _native.attach_policy(server.pid, "interactive")
        load = [port, "--rate", RATE, "--seconds", options.seconds]
        delays = client("echo_client", load)
        # It cannot tell what it was given later.
        return {**result(variant, server), **delays}


def _entries(options: argparse.Namespace, variant: Variant) -> Measured:
    """Recordings of a server that are begun, and ended at once."""
    took_ms: list[float] = []
    stopped_ms: list[float] = []
    with running(variant, options.python, "echo", ["--threads", THREADS]) as server:
        port = server.says()["port"]
        for _ in range(options.times):
            took, stopped = _entry(server)
            took_ms.append(took)
            stopped_ms.append(stopped)
        client("echo_client", [port, "--rate", RATE, "--seconds", 0.1])
        server.says()
    return {"took_ms": took_ms, "stopped_ms": stopped_ms}


def _entry(server: Program) -> tuple[float, float]:
    """How long it took to begin a recording, and for how long a thread stood still, in ms."""
    recorder = new_recorder(None)
    begun = time.perf_counter()
    stopped_s = recorder.attach(server.pid)
    took_s = time.perf_counter() - begun
    recorder.stop()
    return took_s * 1e3, (stopped_s or 0.0) * 1e3


def _late(runs: Runs) -> Table:
    """Delays of answers."""
    table = columns(
        f"{runs.setting}: {THREADS} computing threads, delay from due time in ms",
        *("", "p50", "p90", "p99", "max"),
    )
    for variant in (STOCK, INTERACTIVE, ATTACHED):
        delays = runs.pooled(variant, "from_due_ms")
        table.add_row(
            "started under it" if variant is INTERACTIVE else variant.name,
            *(f"{quantile(delays, share):.2f}" for share in (0.5, 0.9, 0.99, 1.0)),
        )
    return table


def _entered(runs: Runs) -> Table:
    """Times of ways in."""
    table = columns(
        f"{runs.setting}: {THREADS} computing threads, ms",
        *("", "n", "to begin, p50", "p99", "max", "stood still, p50", "p99", "max"),
    )
    for variant in (PTRACE, STANDBY):
        took, stopped = (runs.pooled(variant, name) for name in ("took_ms", "stopped_ms"))
        cells = [
            f"{quantile(of, share):.1f}" for of in (took, stopped) for share in (0.5, 0.99, 1.0)
        ]
        table.add_row(variant.name, str(len(took)), *cells)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What has to be shown."""
    for runs in taken:
        if runs.setting == POLICY:
            started, attached = (
                quantile(runs.pooled(variant, "from_due_ms"), 0.99)
                for variant in (INTERACTIVE, ATTACHED)
            )
            yield Target(
                f"p99 after attaching at most {MOST_OF_STARTED} times that under ungil run",
                attached <= MOST_OF_STARTED * started,
                f"{attached / started:.2f} ({attached:.2f} ms to {started:.2f} ms)",
            )
        else:
            woken = quantile(runs.pooled(STANDBY, "took_ms"), 0.99)
            yield Target(
                f"a standby is awake within {MOST_WAKE_MS:.0f} ms (p99)",
                woken <= MOST_WAKE_MS,
                f"{woken:.1f} ms",
            )
            stopped = quantile(runs.pooled(PTRACE, "stopped_ms"), 0.99)
            yield Target(
                f"no thread stands still for more than {MOST_STOPPED_MS:.0f} ms (p99)",
                stopped <= MOST_STOPPED_MS,
                f"{stopped:.1f} ms",
            )


if __name__ == "__main__":
    main()
