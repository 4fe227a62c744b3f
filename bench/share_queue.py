"""What a shared queue hands over between processes, beside those of the standard library.

    python bench/share_queue.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`1:1`, `4:4`: items per second from so many producers to so many consumers. `round trip`: an item
goes to another process and comes back; `asleep`: each side first computes so long that the other
one sleeps. `ungil, spinning` is a queue whose sides look for 1 ms before they sleep, and `os.pipe,
one byte` the cheapest way of the kernel's to wake another process. `idle`: CPU time of eight
processes that wait, without their start. `threads`: within one process, which needs no sharing, and
where a queue of threads is quicker.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import UNGIL, Way, at_most, broke, run, times_faster
from surroundings import spread

QUEUE, SIMPLE, PIPE = Way("mp.Queue"), Way("mp.SimpleQueue"), Way("mp.Pipe")
FIFO, BATCHES = Way("faster-fifo"), Way("ungil, 100 at a time")
ICEORYX, SPINNING, BYTE = Way("iceoryx2"), Way("ungil, spinning"), Way("os.pipe, one byte")
ROUND_TRIPS = [UNGIL, SPINNING, QUEUE, SIMPLE, PIPE, BYTE, FIFO]
THREADS = [Way("queue.SimpleQueue"), Way("queue.Queue")]
# Of a processor, for each who waits: it looks ten times in a second whether a wake-up got lost.
MOST_IDLE = 0.1
# The ways of each task, and how many items they hand over.
TASKS = {
    "1:1 int": ([UNGIL, BATCHES, QUEUE, SIMPLE, PIPE, FIFO], 200_000),
    "1:1 1 KB": ([UNGIL, QUEUE, SIMPLE, PIPE, FIFO, ICEORYX], 100_000),
    # Eight processes take milliseconds to come from the barrier.
    "4:4 int": ([UNGIL, QUEUE, SIMPLE, FIFO], 400_000),
    "round trip": (ROUND_TRIPS, 10_000),
    "round trip asleep": (ROUND_TRIPS, 5_000),
    "idle": ([UNGIL, QUEUE, SIMPLE, FIFO], 8),
    "threads": ([UNGIL, *THREADS], 200_000),
}


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--task", choices=TASKS, action="append", help="instead of all")
    options = parse(made)
    report(options, ["ungil", "faster-fifo", "iceoryx2"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each task."""
    for task in options.task or TASKS:
        ways, items = TASKS[task]
        if options.quick:
            # Eight processes wait, however little is measured.
            items = max(8, items // 10)

        def measure(way: Way, task: str = task, items: int = items) -> Measured:
            return run(options.python, "shared_queue", task, way.name, items)

        runs = interleave(task, ways, measure, options)
        yield runs, _idle_table(runs) if task == "idle" else _table(runs)


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


def _idle(measured: Measured) -> float:
    """Of a processor, what each of those who wait takes: per cent."""
    return 100 * measured["cpu_s"] / measured["wall_s"] / measured["items"]


def _idle_table(runs: Runs) -> Table:
    """What it costs to wait."""
    table = columns("idle: eight processes wait for an item", "", "% of a processor, each")
    for way in TASKS["idle"][0]:
        why = broke(runs, way)
        table.add_row(way.name, f"broke: {why}" if why else spread(runs.each(way, _idle)))
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
            case "round trip":
                yield times_faster(runs, PIPE, 2, _rate)
            case "round trip asleep":
                # Both wake somebody by the kernel, and that is all of it (docs/decisions, 51).
                yield times_faster(runs, BYTE, 1, _rate)
            case "idle":
                if (why := broke(runs, UNGIL)) is not None:
                    yield Target("idle", False, f"ungil cannot be measured: {why}")
                    continue
                seen = runs.each(UNGIL, _idle)
                yield at_most("idle: per cent of a processor, each,", MOST_IDLE, seen)
            case _:
                pass


if __name__ == "__main__":
    main()
