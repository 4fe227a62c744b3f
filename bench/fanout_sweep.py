"""How many threads are worth it: ten thousand waits by how many may be under way at once.

    python bench/fanout_sweep.py [--rounds N] [--python PATH] [--json FILE] [--quick]
        [--rtt SECONDS]... [--kind sleep|tcp]... [--case TEXT]... [--all]

The same work and the same programs as in fanout.py, whole processes, with limits from 100 to as
many as there are items. `knee` is the least limit that comes within a tenth of the best wall time:
more of them cost memory and descriptors, and give nothing. `Little` is what to expect of it from
one small figure: twice the RTT by the CPU seconds of an item, which is how many have to be under
way so that the CPU always has something to do, and as many again.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

from fanning import LONGEST_S, Case, Load, Tools, allow_descriptors, cpu, measure, memory, wall
from fanout import PACKAGES
from interleaving import Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from sharing import broke

RTTS_S = [0.05, 0.3, 1.0]
LIMITS = [100, 250, 500, 1000, 2000, 4000, 10_000]
# A limit is good enough if it takes this much of the best one's time.
NEAR = 1.1
# Program and way by what is swept.
SWEPT = {
    "sleep": {
        "nornir threaded": ("nornir", "threaded"),
        "ThreadPoolExecutor": ("threads", "pool"),
        "gevent Pool": ("gevent", "pool"),
        "asyncio": ("asyncio", "asyncio group sleep"),
        "Go, goroutines": ("goroutines", ""),
        "ungil threads": ("ungil", "threads"),
        "ungil green": ("ungil", "green"),
        "ungil asyncio": ("ungil", "asyncio"),
        "ungil lean": ("ungil", "lean"),
    },
    "tcp": {
        "nornir threaded": ("nornir", "threaded"),
        "ThreadPoolExecutor": ("threads", "pool"),
        "gevent Pool": ("gevent", "pool"),
        "asyncio streams": ("asyncio", "asyncio group streams"),
        "uvloop streams": ("asyncio", "uvloop group streams"),
        "Go, goroutines": ("goroutines", ""),
        "ungil threads": ("ungil", "threads"),
        "ungil green": ("ungil", "green"),
        "ungil asyncio": ("ungil", "asyncio"),
        "ungil lean": ("ungil", "lean"),
    },
}
# Ours, which also find a limit themselves.
AUTOMATIC = ("ungil threads", "ungil green", "ungil asyncio", "ungil lean")


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=3)
    made.add_argument("--rtt", type=float, action="append", help=f"instead of {RTTS_S}")
    made.add_argument("--kind", choices=SWEPT, action="append", help="instead of both")
    made.add_argument("--case", action="append", help="only those whose name contains this")
    made.add_argument("--all", action="store_true", help="also what takes minutes each time")
    options = parse(made)
    options.items = 500 if options.quick else max(LIMITS)
    options.rtt = options.rtt or (RTTS_S[:1] if options.quick else RTTS_S)
    allow_descriptors(options.items)
    tools = Tools.found(options.python)
    print(f"go        {tools.go}")
    report(options, PACKAGES, _sections(options, tools), _no_targets)


def _sections(options: argparse.Namespace, tools: Tools) -> Iterator[tuple[Runs, Table]]:
    """A setting for each kind and RTT."""
    for kind in options.kind or SWEPT:
        for rtt_s in options.rtt:
            load = Load(options.items, rtt_s, tcp=kind == "tcp")
            swept = [
                name
                for name in SWEPT[kind]
                if not options.case or any(text in name for text in options.case)
            ]
            limits = sorted({min(limit, load.items) for limit in LIMITS})
            all_cases = [_case(kind, name, limit) for name in swept for limit in limits]
            all_cases += [_case(kind, name, 0) for name in swept if name in AUTOMATIC]
            patient = [case for case in all_cases if options.all or case.least_s(load) <= LONGEST_S]
            setting = f"{kind}, RTT {1000 * rtt_s:g} ms"
            take = partial(measure, tools=tools, load=load)
            runs = interleave(setting, patient, take, options)
            yield runs, _table(runs, load, kind, swept, limits)


def _case(kind: str, name: str, limit: int) -> Case:
    program, way = SWEPT[kind][name]
    return Case(f"{name} {limit or 'auto'}", program, way, limit)


def _table(runs: Runs, load: Load, kind: str, swept: Sequence[str], limits: Sequence[int]) -> Table:
    """Wall time by limit, and where it stops to fall."""
    table = columns(
        f"{runs.setting}, {load.items:,} items: wall s of whole processes, median",
        *("", *map(str, limits), "auto", "knee", "Little", "MB at the knee", "MB at most"),
    )
    for name in swept:
        by_limit = {
            limit: case for limit in limits if _works(runs, case := _case(kind, name, limit))
        }
        if not by_limit:
            table.add_row(name, "broke")
            continue
        walls = {limit: runs.median(case, wall) for limit, case in by_limit.items()}
        knee = min(limit for limit, wall_s in walls.items() if wall_s <= NEAR * min(walls.values()))
        cpu_s = runs.median(by_limit[min(by_limit)], cpu) / load.items
        automatic = _case(kind, name, 0)
        works = name in AUTOMATIC and _works(runs, automatic)
        table.add_row(
            name,
            *(f"{walls[limit]:.2f}" if limit in walls else "-" for limit in limits),
            f"{runs.median(automatic, wall):.2f}" if works else "",
            str(knee),
            f"{2 * load.rtt_s / cpu_s:.0f}",
            f"{runs.median(by_limit[knee], memory):.0f}",
            f"{runs.median(by_limit[max(by_limit)], memory):.0f}",
        )
    return table


def _works(runs: Runs, case: Case) -> bool:
    return case.name in runs.rounds[0] and broke(runs, case) is None


def _no_targets(_taken: list[Runs]) -> Iterator[Target]:
    """A description has none."""
    return iter(())


if __name__ == "__main__":
    main()
