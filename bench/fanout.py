"""Ten thousand waits at once: what a whole process takes, beside everything else that does it.

    python bench/fanout.py [--rounds N] [--python PATH] [--json FILE] [--quick]
        [--setting NAME]... [--rtt SECONDS]... [--case TEXT]... [--all]

Settings: `sleep` (each item is asleep for one RTT), `tcp` (each item connects to an address of its
own, sends a line, and reads the line that a fake device answers one RTT later), `warm` (the work
again and again in one process), `memory` (a million items of a generator, beside ten thousand),
`concurrent` (100,000 sleeps, all at the same time) and `few` (ten items: what one should not
take ungil for).

Whole processes are measured from outside, from before their start to after their end: wall time,
CPU time of the user and of the system, peak resident memory (fanout_used.py). Each peer is used in
the best form that its documentation shows, and has no limit where it needs none. nornir's
SerialRunner would need 500 s for the least of it: its row is tasks that return at once, which is
also what nornir itself costs. Cases which take more than 12 s by arithmetic alone are not run
without --all.

Fake devices are one process for all clients, in Go where it is installed, else in Python on
uvloop; with the latter look at the CPU time of the clients rather than at their wall time.

gornir is measured where UNGIL_GORNIR names a program that does the work with it:
`gornir ITEMS RTT_S PORT LOGGER` waits RTT_S seconds for each of ITEMS hosts of an inventory in
memory, with the parallel runner; asleep if PORT is 0, else for the answer of device number i at
127.1.(i/250).(i%250+1), to which it sends a line. LOGGER is `logrus` (gornir's examples have it) or
`null`. It prints how many hosts succeeded and two zeros, in one line. bench/programs/go/gornir is
such a program, to be built in a copy of gornir.
"""

import argparse
import resource
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import fanout_cases as cases
from fanning import (
    LONGEST_S,
    Case,
    Load,
    Tools,
    cpu,
    inner_cpu,
    inner_wall,
    measure,
    memory,
    wall,
)
from fanout_targets import targets
from interleaving import Measured, Runs, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import broke
from surroundings import spread

PACKAGES = ["ungil", "uvloop", "gevent", "greenlet", "trio", "aiometer", "anyio", "nornir"]
RTTS_S = [0.05, 0.1, 0.3, 1.0]
# For `memory`: short, because it has to be waited for a thousand times.
SHORT_S = 0.01
# For `concurrent`: longer than the last of them takes to start.
LONG_S = 5.0
AT_ONCE = 1000
TIMES = 6
# A descriptor for each connection, and some for everything else.
SPARE_DESCRIPTORS = 100


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--setting", choices=SETTINGS, action="append", help="instead of all")
    made.add_argument("--rtt", type=float, action="append", help=f"instead of {RTTS_S}")
    made.add_argument("--case", action="append", help="only those whose name contains this")
    made.add_argument("--all", action="store_true", help="also what takes minutes each time")
    options = parse(made)
    options.items, options.many, options.concurrent = 10_000, 1_000_000, 100_000
    if options.quick:
        options.items, options.many, options.concurrent = 500, 20_000, 2000
        options.rtt = options.rtt or RTTS_S[:1]
    options.rtt = options.rtt or RTTS_S
    _allow_descriptors(options.items)
    tools = Tools.found(options.python)
    print(f"go        {tools.go}; gornir {tools.gornir or 'not named'}")
    report(options, PACKAGES, _sections(options, tools), targets)


def _allow_descriptors(items: int) -> None:
    """As many as the machine lets us have: the peers do not look after that themselves."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < items + SPARE_DESCRIPTORS:
        sys.exit(f"{items} connections need {items + SPARE_DESCRIPTORS} descriptors, not {most}")


def _sections(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    for setting in options.setting or SETTINGS:
        yield from SETTINGS[setting](options, tools)


def _taken(
    name: str,
    all_cases: Sequence[Case],
    load: Load,
    options: argparse.Namespace,
    take: Callable[[Case], Measured],
) -> tuple[Runs, list[Case]]:
    """Measure those that are asked for, and those which were not run."""
    wanted = [
        case
        for case in all_cases
        if not options.case or any(text in case.name for text in options.case)
    ]
    patient = [case for case in wanted if options.all or case.least_s(load) <= LONGEST_S]
    runs = interleave(name, patient, take, options)
    return runs, [case for case in wanted if case not in patient]


def _waits(kind: str, options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    """`sleep` or `tcp`: a setting for each RTT."""
    for rtt_s in options.rtt:
        load = Load(options.items, rtt_s, tcp=kind == "tcp")
        all_cases = (cases.talking if load.tcp else cases.sleeping)(load.items)
        name = _setting(kind, rtt_s)
        take = partial(measure, tools=tools, load=load)
        runs, left_out = _taken(name, all_cases, load, options, take)
        table = _table(runs, load, [case for case in all_cases if case not in left_out])
        for case in left_out:
            table.add_row(case.name, f"not run: {case.least_s(load):.0f} s at least")
        yield runs, table


def _setting(kind: str, rtt_s: float) -> str:
    return f"{kind}, RTT {1000 * rtt_s:g} ms"


def _warm(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    rtt_s = options.rtt[0]
    load = Load(options.items, rtt_s, times=TIMES)
    runs, _ = _taken(
        _setting("warm", rtt_s),
        cases.warm(load.items),
        load,
        options,
        partial(measure, tools=tools, load=load),
    )
    yield runs, _warm_table(runs, load)


def _memory(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    little, much = Load(options.items, SHORT_S), Load(options.many, SHORT_S)

    def both(case: Case) -> Measured:
        return {
            name: measured[name]
            for load, size in ((little, "little"), (much, "much"))
            for measured in [_named(measure(case, tools, load), size)]
            for name in measured
        }

    name = f"memory, {little.items:,} and {much.items:,} items"
    runs, _ = _taken(name, cases.many(min(AT_ONCE, little.items)), little, options, both)
    yield runs, _memory_table(runs, much)


def _named(measured: Measured, size: str) -> Measured:
    """Figures that say which size they are of; why it broke is the same for both."""
    return {name if name == "broke" else f"{size}_{name}": of for name, of in measured.items()}


def _concurrent(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    load = Load(options.concurrent, LONG_S)
    all_cases = cases.concurrent(load.items)
    name = f"concurrent, {load.items:,} sleeps of {LONG_S:g} s"
    runs, _ = _taken(name, all_cases, load, options, partial(measure, tools=tools, load=load))
    yield runs, _table(runs, load, all_cases)


def _few(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    load = Load(10, options.rtt[0])
    all_cases = cases.few(load.items)
    name = f"few, {load.items} items, RTT {1000 * load.rtt_s:g} ms"
    runs, _ = _taken(name, all_cases, load, options, partial(measure, tools=tools, load=load))
    yield runs, _table(runs, load, all_cases)


SETTINGS: dict[str, Callable[[argparse.Namespace, Tools], Iterator[tuple[Runs, Table]]]] = {
    "sleep": partial(_waits, "sleep"),
    "tcp": partial(_waits, "tcp"),
    "warm": _warm,
    "memory": _memory,
    "concurrent": _concurrent,
    "few": _few,
}


def _shown(runs: Runs, all_cases: Sequence[Case], table: Table) -> Iterator[Case]:
    """Those with figures; the others get a row which says why they have none."""
    for case in all_cases:
        if case.name not in runs.rounds[0]:
            continue
        if (why := broke(runs, case)) is None:
            yield case
        else:
            table.add_row(case.name, f"broke: {why}")


def _table(runs: Runs, load: Load, all_cases: Sequence[Case]) -> Table:
    """Wall time, CPU time and memory of whole processes."""
    table = columns(
        f"{runs.setting}, {load.items:,} items: whole processes",
        *("", "wall s", "to Go's", "CPU s", "CPU us an item", "peak MB"),
    )
    go_works = cases.GOROUTINES.name in runs.rounds[0] and broke(runs, cases.GOROUTINES) is None
    for case in _shown(runs, all_cases, table):
        to_go = runs.ratios(case, cases.GOROUTINES, wall) if go_works else None
        table.add_row(
            case.name,
            spread(runs.each(case, wall)),
            f"{statistics.median(to_go):.2f}" if to_go else "",
            spread(runs.each(case, cpu)),
            f"{1e6 * runs.median(case, cpu) / load.items:.1f}",
            f"{runs.median(case, memory):.0f}",
        )
        if case == cases.SERIAL and load.rtt_s * load.items > LONGEST_S:
            would_s = runs.median(case, wall) + load.rtt_s * load.items
            table.add_row("", f"would be {would_s:,.1f} with real tasks")
    return table


def _warm_table(runs: Runs, load: Load) -> Table:
    """What the work takes inside of a process."""
    table = columns(
        f"{runs.setting}, {load.items:,} items: the work alone, but whole processes of Go",
        *("", "wall s", "beyond the RTT, us an item", "CPU us an item"),
    )
    for case in _shown(runs, cases.warm(load.items), table):
        inside = case.times(load) > 1
        seconds = runs.each(case, inner_wall if inside else wall)
        beyond_s = statistics.median(seconds) - case.least_s(load) / case.times(load)
        table.add_row(
            case.name,
            spread(seconds),
            f"{1e6 * beyond_s / load.items:.1f}",
            f"{1e6 * runs.median(case, inner_cpu if inside else cpu) / load.items:.1f}",
        )
    return table


def _memory_table(runs: Runs, much: Load) -> Table:
    """Peak memory with few and many items."""
    table = columns(
        f"{runs.setting}: peak MB of whole processes, {AT_ONCE} at once where there is a limit",
        *("", "of few", "of many", "grows by", "wall s of many", "CPU us an item"),
    )
    for case in _shown(runs, cases.many(AT_ONCE), table):
        few, many = (runs.median(case, lambda m, s=s: m[f"{s}_rss_mb"]) for s in ("little", "much"))
        table.add_row(
            case.name,
            f"{few:.1f}",
            f"{many:.1f}",
            f"{100 * (many / few - 1):.0f} %",
            f"{runs.median(case, lambda m: m['much_wall_s']):.2f}",
            f"{1e6 * runs.median(case, lambda m: m['much_cpu_s']) / much.items:.1f}",
        )
    return table


if __name__ == "__main__":
    main()
