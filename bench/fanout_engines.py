"""What the engines of a fan-out cost where items only wait, and gain where items compute.

    python bench/fanout_engines.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Two workers each, beside the same fan-out in one process. `start` is dask's or ray's cluster, which
one has; `cold` is the first fan-out, `warm` the third: local worker processes start anew each time,
clusters do not. Waiting is what engines lose at: it is here to tell by how much.
"""

import argparse
import statistics
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import Way, broke, run, working
from surroundings import spread

LOCAL = Way("local")
ENGINES = [LOCAL, Way("processes"), Way("dask"), Way("ray")]
WORKERS = 2
TIMES = 3
# Items, and the seconds for which each waits and computes. The CPU time of an asyncssh connection.
SETTINGS = {
    "10,000 items that wait 50 ms": (10_000, 0.05, 0.0),
    "2,000 items that compute 2.6 ms and wait 50 ms": (2_000, 0.05, 0.0026),
}


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=5))
    report(options, ["ungil", "distributed", "ray", "uvloop"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    for setting, (items, wait_s, cpu_s) in SETTINGS.items():
        words = (WORKERS, items // 10 if options.quick else items, wait_s, cpu_s, TIMES)

        def measure(way: Way, words: tuple[object, ...] = words) -> Measured:
            return run(options.python, "fanout_engine", way.name, *words)

        runs = interleave(setting, ENGINES, measure, options)
        yield runs, _table(runs)


def _start(measured: Measured) -> float:
    return measured["start_s"]


def _cold(measured: Measured) -> float:
    return measured["taken_s"][0]


def _warm(measured: Measured) -> float:
    return measured["taken_s"][-1]


def _table(runs: Runs) -> Table:
    table = columns(runs.setting, "engine", "start s", "cold s", "warm s", "local / engine, warm")
    there = working(runs, ENGINES)
    for way in ENGINES:
        if way not in there:
            table.add_row(way.name, broke(runs, way))
            continue
        figures = [spread(runs.each(way, of)) for of in (_start, _cold, _warm)]
        ratio = spread(runs.ratios(LOCAL, way, _warm)) if LOCAL in there else ""
        table.add_row(way.name, *figures, ratio)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    runs = taken[-1]
    for way in working(runs, ENGINES[1:]):
        seen = runs.ratios(LOCAL, way, _warm)
        claim = f"{way.name}: items that compute run at least 1.6 times as fast on two cores"
        yield Target(claim, statistics.median(seen) >= 1.6, spread(seen))


if __name__ == "__main__":
    main()
