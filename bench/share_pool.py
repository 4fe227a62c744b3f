"""What a task costs in a pool of processes, beside other pools.

    python bench/share_pool.py [--rounds N] [--workers N] [--task TASK] [--json FILE] [--quick]

`submit`: tiny tasks are submitted one by one, and their results taken at the end; `round trip`:
each is waited for; `map`: calls in chunks of 1,000; `large chunks`: the same in four chunks a
worker, where the pool has little to do and a pickle of it all is what is paid; `start`: until 8
workers of a new pool run a task at the same time, and have answered, `start, spawn`: the same with
workers that are new interpreters; `sums`: tasks of some 200 us, where there is little left to win.

`tasks/s` counts tasks, or calls of a map; `ungil's cost` is its time divided by the other's in the
same round. joblib has no single tasks.
"""

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import UNGIL, Way, broke, run
from surroundings import spread

EXECUTOR, MP_POOL = Way("ProcessPoolExecutor"), Way("mp.Pool")
LOKY, JOBLIB, RAY = Way("loky"), Way("joblib"), Way("ray")
PACKAGES = ["ungil", "loky", "joblib", "ray"]
LOCAL = [UNGIL, EXECUTOR, MP_POOL, LOKY]
SINGLE = [*LOCAL, RAY]


@dataclass(frozen=True)
class Task:
    """What is done, by whom, how often, and what ungil's time may be of that of peers."""

    ways: list[Way]
    number: int
    peers: list[Way]
    most: float
    workers: int | None = None


TASKS = {
    "submit": Task(SINGLE, 20_000, [EXECUTOR], 1 / 10),
    "round trip": Task(SINGLE, 2_000, [EXECUTOR], 1 / 3),
    "map": Task([*LOCAL, JOBLIB], 1_000_000, [MP_POOL], 1 / 2),
    "large chunks": Task(LOCAL, 1_000_000, [MP_POOL], 1 / 2),
    "start": Task(LOCAL, 8, [EXECUTOR, MP_POOL], 1.0, workers=8),
    "start, spawn": Task(LOCAL, 8, [EXECUTOR, MP_POOL], 1.0, workers=8),
    "sums": Task(LOCAL, 4_000, [EXECUTOR], 1.0),
}


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--workers", type=int, default=2, help="of each pool [2]")
    made.add_argument("--task", choices=TASKS, action="append", help="instead of all")
    options = parse(made)
    report(options, PACKAGES, _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each task."""
    for name in options.task or TASKS:
        task = TASKS[name]
        number = max(task.workers or 1, task.number // 20) if options.quick else task.number

        def measure(
            way: Way, name: str = name, task: Task = task, number: int = number
        ) -> Measured:
            workers = task.workers or options.workers
            # Ray takes as long for a thousand as others for a hundred thousand.
            done = number // 10 if way == RAY else number
            return run(options.python, "pooled", name, way.name, done, workers)

        runs = interleave(name, task.ways, measure, options)
        yield runs, _table(runs)


def _each_us(measured: Measured) -> float:
    return 1e6 * measured["wall_s"] / measured["number"]


def _table(runs: Runs) -> Table:
    table = columns(
        f"{runs.setting}: microseconds for each task or call",
        *("", "us each", "of that this process's CPU", "tasks/s", "ungil's cost"),
    )
    for way in TASKS[runs.setting].ways:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        each = runs.median(way, _each_us)
        cpu = runs.median(way, lambda measured: 1e6 * measured["cpu_s"] / measured["number"])
        cost = "" if broke(runs, UNGIL) else spread(runs.ratios(UNGIL, way, _each_us))
        table.add_row(way.name, f"{each:,.2f}", f"{cpu:,.2f}", f"{1e6 / each:,.0f}", cost)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What was asked for."""
    for runs in taken:
        task = TASKS[runs.setting]
        for peer in task.peers:
            claim = f"{runs.setting}: ungil's time at most {task.most:.2g} of {peer.name}'s"
            why = broke(runs, UNGIL) or broke(runs, peer)
            if why is not None:
                yield Target(claim, False, f"cannot be measured: {why}")
                continue
            seen = runs.ratios(UNGIL, peer, _each_us)
            yield Target(claim, statistics.median(seen) <= task.most, spread(seen))


if __name__ == "__main__":
    main()
