"""What two processes get done that use one shared object at once, beside other ways to share.

    python bench/share_two_processes.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`count`: both increment the same number all the time, which must be the sum at the end. `get`,
`set`, `get and set`: random keys of one dict of 1,000. Operations of both together, per second.
`builtin` is a dict of each process's own, which shares nothing: what sharing costs at most.
"""

import argparse
from collections.abc import Iterator

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import (
    LMDB,
    MANAGER,
    PACKAGES,
    SMD,
    ULTRADICT,
    UNGIL,
    Way,
    broke,
    run,
    times_faster,
)
from surroundings import spread

BUILTIN = Way("builtin")
VALUE = Way("mp.Value")
DICTS = [BUILTIN, UNGIL, MANAGER, ULTRADICT, SMD, LMDB]
TASKS = {
    "count": [BUILTIN, UNGIL, VALUE, MANAGER, ULTRADICT, LMDB],
    "get": DICTS,
    "set": DICTS,
    "get and set": DICTS,
}
TIMES_VALUE = 5.0
TIMES_MANAGER = 50.0


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=7)
    made.add_argument("--seconds", type=float, default=1.0, help="of a measurement [1]")
    made.add_argument("--task", choices=TASKS, action="append", help="instead of all")
    options = parse(made)
    if options.quick:
        options.seconds = 0.2
    report(options, PACKAGES, _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each task."""
    for task in options.task or TASKS:

        def measure(way: Way, task: str = task) -> Measured:
            return run(options.python, "shared_by_two", task, way.name, options.seconds)

        runs = interleave(task, TASKS[task], measure, options)
        yield runs, _table(runs)


def _rate(measured: Measured) -> float:
    """Operations of both per second."""
    return measured["operations"] / measured["wall_s"]


def _table(runs: Runs) -> Table:
    """Operations, and what was lost."""
    table = columns(
        f"{runs.setting}: two processes, ungil's operations as a multiple",
        *("", "operations/s", "ungil is faster by", "increments lost"),
    )
    for way in TASKS[runs.setting]:
        if (why := broke(runs, way)) is not None:
            table.add_row(way.name, f"broke: {why}")
            continue
        faster = "" if broke(runs, UNGIL) else spread(runs.ratios(UNGIL, way, _rate))
        # The builtins are two, so half of what was counted is in the other one.
        counted = runs.setting == "count" and way != BUILTIN
        lost = sum(runs.each(way, lambda measured: measured["lost"])) if counted else ""
        table.add_row(way.name, f"{runs.median(way, _rate):,.0f}", faster, str(lost))
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What issue 4 asks for."""
    for runs in taken:
        if runs.setting != "count":
            yield times_faster(runs, MANAGER, TIMES_MANAGER, _rate)
            continue
        yield times_faster(runs, VALUE, TIMES_VALUE, _rate)
        if broke(runs, UNGIL) is None:
            lost = sum(runs.each(UNGIL, lambda measured: measured["lost"]))
            done = sum(runs.each(UNGIL, lambda measured: measured["operations"]))
            yield Target("count: no update is lost", lost == 0, f"{lost} of {done:,}")


if __name__ == "__main__":
    main()
