"""What a preload costs each process that starts under `ungil run`, Python or not.

    python bench/startup.py [--rounds N] [--python PATH] [--json FILE] [--quick]

A policy is handed on to child processes, so a program that starts many pays for each. Three
commands that do nothing, each started many times one after the other; the difference of the wall
time of one start, and its CPU time, to the bare start of the same round. `bare again` is the bare
command a second time: as much as it differs from 0 is noise.
"""

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, interleave, parse, parser, report
from peers import BARE_AGAIN, INTERACTIVE, STOCK, Variant
from rich.table import Table
from sampling import children_cpu
from starts import more, spread_of_more, table_of_starts

VARIANTS = [STOCK, BARE_AGAIN, INTERACTIVE]
STARTS = 20
MOST_MS = 5.0


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=31))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each command."""
    commands = {
        "true": ["true"],
        "python -S": [options.python, "-S", "-c", ""],
        "python": [options.python, "-c", "import threading, subprocess, multiprocessing"],
    }
    for name, words in commands.items():

        def measure(variant: Variant, words: list[str] = words) -> Measured:
            return _start(words, variant, 3 if options.quick else STARTS)

        runs = interleave(name, VARIANTS, measure, options)
        yield runs, table_of_starts(runs, VARIANTS, STOCK, "ms", 2)


def _start(words: list[str], variant: Variant, starts: int) -> Measured:
    """Wall and CPU time of one start of `words`, in ms."""
    environment = {**variant.environment(), "PATH": os.environ["PATH"]}
    used_s, began_s = children_cpu(), time.perf_counter()
    for _ in range(starts):
        subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, check=True)
    wall_s, cpu_s = time.perf_counter() - began_s, children_cpu() - used_s
    return {"wall_ms": wall_s / starts * 1e3, "cpu_ms": cpu_s / starts * 1e3}


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """A start takes hardly longer."""
    for runs in taken:
        wall_ms = more(runs, INTERACTIVE, STOCK, "wall_ms")
        again_ms = more(runs, BARE_AGAIN, STOCK, "wall_ms")
        yield Target(
            f"{runs.setting}: a start takes at most {MOST_MS} ms longer",
            statistics.median(wall_ms) <= MOST_MS,
            f"{spread_of_more(wall_ms, 2)}, bare again {spread_of_more(again_ms, 2)}",
        )


if __name__ == "__main__":
    main()
