"""What a shared queue hands over between processes, beside those of the standard library.

    python bench/share_queue.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`1:1`, `4:4`: items per second from so many producers to so many consumers. `round trip`: an item
goes to another process and comes back; `asleep`: each side first computes so long that the other
one sleeps. `idle`: CPU time of eight processes that wait. `threads`: within one process, which
needs no sharing, and where a queue of threads is quicker.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import UNGIL, Way, at_most, broke, run, times_faster
from surroundings import spread

QUEUE, SIMPLE, PIPE = Way("mp.Queue"), Way("mp.SimpleQueue"), Way("mp.Pipe")
FIFO, BATCHES = Way("faster-fifo"), Way("ungil, 100 at a time")
THREADS = [Way("queue.SimpleQueue"), Way("queue.Queue")]
# The ways of each task, and how many items they hand over.
TASKS = {
    "1:1 int": ([UNGIL, BATCHES, QUEUE, SIMPLE, PIPE, FIFO], 200_000),
    "1:1 1 KB": ([UNGIL, QUEUE, SIMPLE, PIPE, FIFO], 100_000),
    "4:4 int": ([UNGIL, QUEUE, SIMPLE, FIFO], 100_000),
    "round trip": ([UNGIL, QUEUE, SIMPLE, PIPE, FIFO], 10_000),
    "round trip asleep": ([UNGIL, QUEUE, SIMPLE, PIPE, FIFO], 5_000),
    "idle": ([UNGIL, QUEUE, SIMPLE, FIFO], 8),
    "threads": ([UNGIL, *THREADS], 200_000),
}


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--task", choices=TASKS, action="append", help="instead of all")
    options = parse(made)
    report(options, ["ungil", "faster-fifo"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each task."""
    for task in options.task or TASKS:
        ways, items = TASKS[task]
        if options.quick:
            items = max(8, items // 10)

        def measure(way: Way, task: str = task, items: int = items) -> Measured:
            return run(options.python, "shared_queue", task, way.name, items)

        runs = interleave(task, ways, measure, options)
        yield runs, _table(runs)


def _rate(measured: Measured) -> float:
    """Items per second."""
    return measured["items"] / measured["wall_s"]


def _cpu(measured: Measured) -> float:
    """Microseconds of CPU time for an item, the start of the processes included."""
    return measured["cpu_s"] / measured["items"] * 1e6


def _table(runs: Runs) -> Table:
    """Rates, and ungil's as a multiple."""
    table = columns(
        f"{runs.setting}: ungil's rate as a multiple",
        *("", "items/s", "µs each", "CPU µs each", "ungil is faster by"),
    )
    for way in TASKS[runs.setting][0]:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        rate = runs.median(way, _rate)
        faster = "" if broke(runs, UNGIL) else spread(runs.ratios(UNGIL, way, _rate))
        cpu = f"{runs.median(way, _cpu):,.1f}"
        table.add_row(way.name, f"{rate:,.0f}", f"{1e6 / rate:,.2f}", cpu, faster)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 18 asks for."""
    for runs in taken:
        match runs.setting:
            case "1:1 int":
                yield from (times_faster(runs, peer, 8, _rate) for peer in (QUEUE, PIPE))
            case "1:1 1 KB":
                yield from (times_faster(runs, peer, 5, _rate) for peer in (QUEUE, PIPE))
            case "4:4 int":
                yield times_faster(runs, QUEUE, 8, _rate)
            case "round trip asleep":
                yield times_faster(runs, PIPE, 2, _rate)
            case "idle":
                seen = runs.each(UNGIL, lambda measured: measured["cpu_s"] * 1e3)
                yield at_most("idle: CPU milliseconds of all, start and end included,", 100, seen)
            case _:
                pass


if __name__ == "__main__":
    main()
