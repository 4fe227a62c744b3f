"""The experiment of the POSH paper: matrices multiplied by 1 to 8 workers, threads and processes.

    python bench/share_matmul.py [--rounds N] [--python PATH] [--json FILE] [--quick]

examples/matmul.py, with the same worker code for both; rows are read whole. Times include starting
the workers and waiting for them. They are weighted as in the paper: one thread, which uses ordinary
lists, is 100. The paper had eight processors; here, more workers than processors cannot be faster.

The control is the same work by processes that share nothing: what two of them take is what the
machine gives two processes at that moment. Nothing that shares can do better.
"""

import argparse
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import at_most, broke, run

from ungil.lab.experiments.matmul import SHARE, THREADS, published

MOST_OF_THE_PLAIN_PROGRAM = 1.3
# What two cores of a machine give is not ours: two processes that share nothing say it.
MOST_OF_THE_CONTROL = 1.03


@dataclass(frozen=True)
class Crew:
    """Workers of one kind."""

    how: str
    workers: int

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.workers} {self.how}"


PAIRS = [(Crew("threads", workers), Crew("processes", workers)) for workers in range(1, 9)]
(ONE_THREAD, ONE_PROCESS), (_, TWO_PROCESSES) = PAIRS[:2]
TWO_APART = Crew("apart", 2)
CREWS = [*PAIRS[0], *PAIRS[1], TWO_APART, *(crew for pair in PAIRS[2:] for crew in pair)]


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=11)
    made.add_argument("--size", type=int, default=200, help="of the matrices [200]")
    options = parse(made)
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """One setting."""

    def measure(crew: Crew) -> Measured:
        return run(options.python, "shared_matmul", crew.how, crew.workers, options.size)

    runs = interleave(f"{options.size}x{options.size}", CREWS, measure, options)
    yield runs, _table(runs)


def _seconds(measured: Measured) -> float:
    return measured["wall_s"]


def _table(runs: Runs) -> Table:
    """Seconds and weighted times, beside those of the paper."""
    table = columns(
        f"{runs.setting} on {os.cpu_count()} cores: one thread is 100",
        *(
            "workers",
            "threads s",
            "processes s",
            "threads",
            "processes",
            "threads 2003",
            "POSH 2003",
        ),
    )
    for threads, processes in PAIRS:
        number = threads.workers
        seconds, weighted = [], []
        for crew in (threads, processes):
            if (why := broke(runs, crew) or broke(runs, ONE_THREAD)) is not None:
                seconds.append(f"broke: {why}")
                weighted.append("")
                continue
            seconds.append(f"{runs.median(crew, _seconds):.3f}")
            ratios = runs.ratios(crew, ONE_THREAD, _seconds)
            weighted.append(f"{100 * statistics.median(ratios):.1f}")
        then = [f"{published(how, number):.1f}" for how in (THREADS, SHARE)]
        table.add_row(str(number), *seconds, *weighted, *then)
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What sharing may cost."""
    for runs in taken:
        why = [broke(runs, crew) for crew in (ONE_THREAD, ONE_PROCESS, TWO_PROCESSES, TWO_APART)]
        if any(why):
            yield Target(runs.setting, False, f"cannot be measured: {why}")
            continue
        yield at_most(
            "one worker: of the plain list program's time",
            MOST_OF_THE_PLAIN_PROGRAM,
            runs.ratios(ONE_PROCESS, ONE_THREAD, _seconds),
        )
        yield at_most(
            "two workers: of the time of two processes that share nothing",
            MOST_OF_THE_CONTROL,
            runs.ratios(TWO_PROCESSES, TWO_APART, _seconds),
        )


if __name__ == "__main__":
    main()
