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
`null`. It prints how many hosts succeeded and two zeros, in one line. go/gornir of the lab's
workloads is such a program, to be built in a copy of gornir.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import fanout_cases as cases
from fanning import (
    LONGEST_S,
    Case,
    Load,
    Tools,
    allow_descriptors,
    cpu,
    devices_cpu,
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


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=5)
    made.add_argument("--setting", choices=SETTINGS, action="append", help="instead of all")
    made.add_argument("--rtt", type=float, action="append", help=f"instead of {RTTS_S}")
    made.add_argument("--case", action="append", help="only those whose name contains this")
    made.add_argument("--all", action="store_true", help="also what takes minutes each time")
    options = parse(made)
    options.items, options.many, options.concurrent = 10_000, 1_000_000, 100_000
    options.long_s = LONG_S
    if options.quick:
        options.items, options.many, options.concurrent = 500, 20_000, 2000
        options.rtt = options.rtt or RTTS_S[:1]
        options.long_s = 1.0
    options.rtt = options.rtt or RTTS_S
    allow_descriptors(options.items)
    tools = Tools.found(options.python)
    print(f"go        {tools.go}; gornir {tools.gornir or 'not named'}")
    report(options, PACKAGES, _sections(options, tools), targets)


def _sections(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    for setting in options.setting or SETTINGS:
        yield from SETTINGS[setting](options, tools)


def _wanted(all_cases: Sequence[Case], options: argparse.Namespace) -> list[Case]:
    """Those that are asked for."""
    texts = options.case or [""]
    return [case for case in all_cases if any(text in case.name for text in texts)]


def _patient(wanted: Sequence[Case], load: Load, options: argparse.Namespace) -> list[Case]:
    """Those which are run."""
    return [case for case in wanted if options.all or case.least_s(load) <= LONGEST_S]


def _whole(
    name: str, all_cases: Sequence[Case], load: Load, options: argparse.Namespace, tools: Tools
) -> tuple[Runs, Table]:
    """A setting that looks at whole processes only."""
    wanted = _wanted(all_cases, options)
    take = partial(measure, tools=tools, load=load)
    runs = interleave(name, _patient(wanted, load, options), take, options)
    return runs, _table(runs, load, wanted)


def _waits(kind: str, options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    """`sleep` or `tcp`: a setting for each RTT."""
    for rtt_s in options.rtt:
        load = Load(options.items, rtt_s, tcp=kind == "tcp")
        all_cases = (cases.talking if load.tcp else cases.sleeping)(load.items)
        yield _whole(f"{kind}, RTT {1000 * rtt_s:g} ms", all_cases, load, options, tools)


def _warm(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    load = Load(options.items, options.rtt[0], times=TIMES)
    wanted = _wanted(cases.warm(load.items), options)
    take = partial(measure, tools=tools, load=load)
    runs = interleave(f"warm, RTT {1000 * load.rtt_s:g} ms", wanted, take, options)
    yield runs, _warm_table(runs, load, wanted)


def _memory(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    little, much = Load(options.items, SHORT_S), Load(options.many, SHORT_S)

    def both(case: Case) -> Measured:
        few, many = measure(case, tools, little), measure(case, tools, much)
        for measured in (few, many):
            if "broke" in measured:
                return measured
        return {"few_rss_mb": few["rss_mb"], **many}

    wanted = _wanted(cases.many(min(AT_ONCE, little.items)), options)
    runs = interleave(f"memory, {little.items:,} and {much.items:,}", wanted, both, options)
    yield runs, _memory_table(runs, much, wanted)


def _concurrent(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    load = Load(options.concurrent, options.long_s)
    name = f"concurrent, {load.items:,} sleeps of {load.rtt_s:g} s"
    yield _whole(name, cases.concurrent(load.items), load, options, tools)


def _few(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    load = Load(10, options.rtt[0])
    name = f"few, RTT {1000 * load.rtt_s:g} ms"
    yield _whole(name, cases.few(load.items), load, options, tools)


SETTINGS: dict[str, Callable[[argparse.Namespace, Tools], Iterator[tuple[Runs, Table]]]] = {
    "sleep": partial(_waits, "sleep"),
    "tcp": partial(_waits, "tcp"),
    "warm": _warm,
    "memory": _memory,
    "concurrent": _concurrent,
    "few": _few,
}


def _shown(runs: Runs, wanted: Sequence[Case], load: Load, table: Table) -> Iterator[Case]:
    """Those with figures; of the others it says below the table why they have none."""
    for case in wanted:
        if case.name not in runs.rounds[0]:
            _remark(table, f"{case.name} was not run: {case.least_s(load):.0f} s at least")
        elif (why := broke(runs, case)) is not None:
            _remark(table, f"{case.name} broke: {why}")
        else:
            yield case


def _remark(table: Table, words: str) -> None:
    """A line below the table."""
    table.caption = f"{table.caption}\n{words}" if table.caption else words
    table.caption_justify = "left"


def _table(runs: Runs, load: Load, wanted: Sequence[Case]) -> Table:
    """Wall time, CPU time and memory of whole processes."""
    table = columns(
        f"{runs.setting}, {load.items:,} items: whole processes",
        *("", "wall s", "to Go's", "CPU s", "CPU us an item", "peak MB"),
        *(["devices' CPU s"] if load.tcp else []),
    )
    go_works = cases.GOROUTINES.name in runs.rounds[0] and broke(runs, cases.GOROUTINES) is None
    for case in _shown(runs, wanted, load, table):
        to_go = runs.ratios(case, cases.GOROUTINES, wall) if go_works else None
        table.add_row(
            case.name,
            spread(runs.each(case, wall)),
            f"{statistics.median(to_go):.2f}" if to_go else "",
            spread(runs.each(case, cpu)),
            f"{1e6 * runs.median(case, cpu) / load.items:.1f}",
            f"{runs.median(case, memory):.0f}",
            *([f"{runs.median(case, devices_cpu):.2f}"] if load.tcp else []),
        )
        if case == cases.SERIAL and load.rtt_s * load.items > LONGEST_S:
            would_s = runs.median(case, wall) + load.rtt_s * load.items
            _remark(table, f"{case.name}: with tasks that wait, it would be {would_s:,.0f} s")
    return table


def _warm_table(runs: Runs, load: Load, wanted: Sequence[Case]) -> Table:
    """What the work takes inside of a process."""
    table = columns(
        f"{runs.setting}, {load.items:,} items: the work alone, but whole processes of Go",
        *("", "wall s", "beyond the RTT, us an item", "CPU us an item"),
    )
    for case in _shown(runs, wanted, load, table):
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


def _memory_table(runs: Runs, much: Load, wanted: Sequence[Case]) -> Table:
    """Peak memory with few and many items."""
    table = columns(
        f"{runs.setting} items: peak MB of whole processes, {AT_ONCE} at once if there is a limit",
        *("", "of few", "of many", "grows by", "wall s of many", "CPU us an item"),
    )
    for case in _shown(runs, wanted, much, table):
        few_mb, many_mb = (runs.median(case, lambda m: m["few_rss_mb"]), runs.median(case, memory))
        table.add_row(
            case.name,
            f"{few_mb:.1f}",
            f"{many_mb:.1f}",
            f"{100 * (many_mb / few_mb - 1):.0f} %",
            spread(runs.each(case, wall)),
            f"{1e6 * runs.median(case, cpu) / much.items:.1f}",
        )
    return table


if __name__ == "__main__":
    main()
