"""How soon other processes notice what one of them publishes.

    python bench/share_changes.py [--rounds N] [--python PATH] [--json FILE] [--quick]

A process writes the time into something that others wait for, and each of them reads its clock when
it has seen it; 2,000 times in each measurement, with one reader and with eight
(bench/programs/shared_changes.py). A poll of a dict of multiprocessing.Manager is what programs do
whose library cannot wait; an event of multiprocessing can, but says nothing of what has changed.
With eight readers and two processors, the last one waits for the others.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import Way, at_most, broke, run
from surroundings import spread

WAIT_FOR, WAIT_FOR_CHANGE = Way("wait_for"), Way("wait_for_change")
WAYS = [
    WAIT_FOR,
    WAIT_FOR_CHANGE,
    Way("await_for"),
    Way("Manager, polled"),
    Way("mp.Event"),
]
READERS = {"one reader": 1, "eight readers": 8}
CHANGES = 2_000
MOST_US = 1_000.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--changes", type=int, default=CHANGES, help=f"in a measurement [{CHANGES}]")
    options = parse(made)
    if options.quick:
        options.changes = min(options.changes, 100)
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each number of readers."""
    for setting, readers in READERS.items():

        def measure(way: Way, readers: int = readers) -> Measured:
            return run(options.python, "shared_changes", way.name, readers, options.changes)

        runs = interleave(setting, WAYS, measure, options)
        yield runs, _table(runs)


def _figure(runs: Runs, way: Way, name: str) -> list[float]:
    return runs.each(way, lambda measured: measured[name])


def _table(runs: Runs) -> Table:
    table = columns(
        f"{runs.setting}: microseconds from the write to the reader's clock",
        *("", "median", "99 of 100", "the last", "CPU of the readers, %"),
    )
    for way in WAYS:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        names = ("p50_us", "p99_us", "max_us", "cpu_percent")
        table.add_row(way.name, *(spread(_figure(runs, way, name)) for name in names))
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 18 asks for: workers notice a published configuration within a millisecond."""
    for runs in taken:
        for way in (WAIT_FOR, WAIT_FOR_CHANGE):
            if (why := broke(runs, way)) is not None:
                yield Target(f"{runs.setting}: {way.name}", False, f"cannot be measured: {why}")
                continue
            claim = f"{runs.setting}: {way.name}, microseconds in 99 of 100 cases,"
            yield at_most(claim, MOST_US, _figure(runs, way, "p99_us"))


if __name__ == "__main__":
    main()
