"""What it takes to get into a process that runs, and what a policy does there.

    python bench/attach.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`policy`: delays of an echo thread beside four computing threads (as in io_latency.py, the kernel
places them), when the server was started under `ungil run`, and when it was given the policy while
it ran. `ways in`: how long it takes to begin a recording of that server, by ptrace and through the
control page of a standby, and for how long a thread stood still. `standby`: CPU time of programs of
one thread whose hook sleeps, as a ratio to the bare run of the same round.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
from peers import FOLDER, INTERACTIVE, STOCK, Program, Variant, client, running
from rich.table import Table
from sampling import sample
from surroundings import spread

from ungil import _native
from ungil.recorder import new_recorder

ATTACHED = Variant("attached")
STANDBY = Variant("standby", standby=True)
PTRACE = Variant("ptrace")
BARE_AGAIN = Variant("bare again")
THREADS, RATE = 4, 100.0
PROGRAMS = {"one_cpu_thread": 100_000, "stat_switches": 50_000, "null_switches": 200_000}
POLICY, WAYS = "policy", "ways in"
# What has to be shown.
MOST_OF_STARTED = 1.25
MOST_WAKE_MS = 100.0
MOST_STOPPED_MS = 50.0
MOST_COST = 1.001


@dataclass(frozen=True)
class Setting:
    """Something that is measured: its name, its variants, how, and how it is shown."""

    name: str
    variants: list[Variant]
    measure: Callable[[Variant], Measured]
    table: Callable[[Runs], Table]


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=15)
    made.add_argument("--seconds", type=float, default=3.0, help="of load [3]")
    made.add_argument("--times", type=int, default=20, help="attached to a server [20]")
    made.add_argument("--setting", choices=[POLICY, WAYS, STANDBY.name], help="instead of all")
    options = parse(made)
    if options.quick:
        options.seconds, options.times = 0.5, 3
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    settings = [
        Setting(POLICY, [STOCK, INTERACTIVE, ATTACHED], functools.partial(_delays, options), _late),
        Setting(WAYS, [PTRACE, STANDBY], functools.partial(_entries, options), _entered),
    ]
    for program, little in PROGRAMS.items():
        words = [options.python, str(FOLDER / f"{program}.py")]
        words += [str(little)] if options.quick else []
        measure = functools.partial(_cpu, words)
        settings.append(
            Setting(f"{STANDBY.name}, {program}", [STOCK, BARE_AGAIN, STANDBY], measure, _costs)
        )
    for setting in settings:
        if setting.name.startswith(options.setting or ""):
            runs = interleave(setting.name, setting.variants, setting.measure, options)
            yield runs, setting.table(runs)


def _delays(options: argparse.Namespace, variant: Variant) -> Measured:
    """One run of the server and its client."""
    with running(variant, options.python, "echo", ["--threads", THREADS]) as server:
        port = server.says()["port"]
        if variant is ATTACHED:
            _native.attach_policy(server.pid, "interactive")
        load = [port, "--rate", RATE, "--seconds", options.seconds]
        delays = client("echo_client", load)
        server.says()
        return delays


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


def _cpu(words: list[str], variant: Variant) -> Measured:
    """CPU time of a program."""
    return vars(sample(words, variant.environment()))


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


def _cpu_s(measured: Measured) -> float:
    """CPU seconds of the work."""
    return measured["cpu_s"]


def _costs(runs: Runs) -> Table:
    """CPU time of the work."""
    table = columns(runs.setting, "", "CPU time of the work", "ratio to bare")
    for variant in (STOCK, BARE_AGAIN, STANDBY):
        table.add_row(
            "bare" if variant is STOCK else variant.name,
            f"{runs.median(variant, _cpu_s):.3f} s",
            spread(runs.ratios(variant, STOCK, _cpu_s)),
        )
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
        elif runs.setting == WAYS:
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
        else:
            ratios = runs.ratios(STANDBY, STOCK, _cpu_s)
            yield Target(
                f"{runs.setting}: CPU time at most {MOST_COST} of the bare program's",
                statistics.median(ratios) <= MOST_COST,
                f"{spread(ratios)}, bare again {spread(runs.ratios(BARE_AGAIN, STOCK, _cpu_s))}",
            )


if __name__ == "__main__":
    main()
