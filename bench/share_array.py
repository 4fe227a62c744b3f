"""What it costs to hand an array to another process, and what memory many readers of one take.

    python bench/share_array.py [--rounds N] [--python PATH] [--json FILE] [--quick]

An array of 4 MiB goes to another process, which looks at its first item and answers with a number
(bench/programs/shared_array.py). `pointer` is the same with a number instead of the array: what a
message costs by itself. Both sides sleep between messages. Then 32 processes read one array, and
one process adds to an item of an array, which is where an ordinary array is quicker.
"""

import argparse
from collections.abc import Iterator
from importlib.util import find_spec

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import Way, at_most, broke, run
from surroundings import spread

# Of one measurement; the pipes need ten, and Ray half a minute to start.
PATIENCE_S = 120
POINTER = Way("pointer")
UNGIL = Way("ungil")
PIPE = Way("Pipe")
HANDED = [
    POINTER,
    UNGIL,
    Way("ungil, copied"),
    Way("Pipe, number"),
    PIPE,
    Way("mp.Queue"),
    Way("shared_memory"),
    *([Way("ray")] if find_spec("ray") else []),
]
NUMPY = Way("numpy")
ADDED = [NUMPY, Way("ungil view"), UNGIL, Way("mp.Array")]
SIZE = 4 << 20
MOST_TIMES = 2.0
MOST_GROWTH = 0.10


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=1.0, help="of a measurement [1]")
    made.add_argument("--readers", type=int, default=32, help="[32]")
    options = parse(made)
    if options.quick:
        options.seconds, options.readers = 0.2, min(options.readers, 8)
    report(options, ["ungil", "numpy", "ray"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """The three parts."""

    def measured(*words: object) -> Measured:
        return run(options.python, "shared_array", *words, patience_s=PATIENCE_S)

    def handed(way: Way) -> Measured:
        return measured("handed", way.name, SIZE, options.seconds)

    runs = interleave("4 MiB handed over", HANDED, handed, options)
    yield runs, _times(runs, HANDED, POINTER, "round_trip_us", "round trip us")

    def read(way: Way) -> Measured:
        return measured("read", way.name, 16 * SIZE, options.readers)

    # It does not vary, and the pipes copy 2 GiB.
    fewer = argparse.Namespace(**{**vars(options), "rounds": min(options.rounds, 3)})
    runs = interleave(f"{options.readers} readers of 64 MiB", [UNGIL, PIPE], read, fewer)
    yield runs, _memory(runs)

    def added(way: Way) -> Measured:
        return measured("added", way.name, options.seconds)

    runs = interleave("an item is added to", ADDED, added, options)
    yield runs, _times(runs, ADDED, NUMPY, "add_ns", "ns")


def _times(runs: Runs, ways: list[Way], base: Way, name: str, title: str) -> Table:
    """A time of each way, and how often it is that of one."""
    table = columns(runs.setting, "", title, "", f"of {base.name}")
    for way in ways:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        times = [measured[name] for measured in (round_[way.name] for round_ in runs.rounds)]
        ratios = "" if broke(runs, base) else spread(_ratios(runs, way, base, name))
        table.add_row(way.name, f"{sorted(times)[len(times) // 2]:,.1f}", spread(times), ratios)
    return table


def _ratios(runs: Runs, way: Way, base: Way, name: str) -> list[float]:
    return runs.ratios(way, base, lambda measured: measured[name])


def _growth(measured: Measured) -> float:
    """Of all processes by the reading, as a part of the array."""
    return (measured["after"] - measured["before"]) / measured["array"]


def _memory(runs: Runs) -> Table:
    """Megabytes."""
    table = columns(
        f"{runs.setting}, MB",
        *("", "PSS of all before", "after", "growth, of the array", "largest RSS"),
    )
    for way in (UNGIL, PIPE):
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        table.add_row(
            way.name,
            f"{runs.median(way, lambda measured: measured['before']):,.0f}",
            f"{runs.median(way, lambda measured: measured['after']):,.0f}",
            spread(runs.each(way, _growth)),
            f"{runs.median(way, lambda measured: measured['rss']):,.0f}",
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 18 asks for."""
    handed, read, _ = taken
    for runs in (handed, read):
        if (why := broke(runs, UNGIL)) is not None:
            yield Target(runs.setting, False, f"cannot be measured: {why}")
            return
    ratios = _ratios(handed, UNGIL, POINTER, "round_trip_us")
    claim = "the hand-over of 4 MiB, in those of a pointer,"
    yield at_most(claim, MOST_TIMES, ratios)
    claim = f"{read.setting}: one copy; what the reading adds, as a part of the array,"
    yield at_most(claim, MOST_GROWTH, read.each(UNGIL, _growth))


if __name__ == "__main__":
    main()
