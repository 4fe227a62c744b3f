"""What it costs ungil to look at threads that are off the GIL: CPU time of all that it does.

    python bench/looks.py [--rounds N] [--python PATH] [--json FILE] [--quick]

Threads sleep, 20 ms or 2 s at a time, so that nearly all CPU time is ungil's own. Each round runs
them bare and traced; the difference is what recording costs in all, of which looks are a part.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table
from surroundings import spread

PROGRAM = Path(__file__).parent / "programs/away.py"
SECONDS = 5.0
SETTINGS = {
    "3 threads, 20 ms": (3, 20),
    "50 threads, 20 ms": (50, 20),
    "200 threads, 20 ms": (200, 20),
    "200 threads, 2 s": (200, 2000),
}
MOST_SHARE = 0.20


@dataclass(frozen=True)
class Variant:
    """A way to run the program."""

    name: str


BARE, TRACED = Variant("bare"), Variant("traced")


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=5))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """A setting for each number of threads and length of sleep."""
    for setting, shape in SETTINGS.items():

        def measure(variant: Variant, shape: tuple[int, int] = shape) -> Measured:
            return _run([options.python, str(PROGRAM), *map(str, shape), str(SECONDS)], variant)

        runs = interleave(setting, [BARE, TRACED], measure, options)
        yield runs, _table(runs)


def _run(words: list[str], variant: Variant) -> Measured:
    """CPU time of the program, with ungil's, and what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        told, trace = Path(folder) / "report.json", Path(folder) / "t.pftrace"
        if variant is TRACED:
            ungil = [sys.executable, "-m", "ungil", "trace", "--quiet", "--json", str(told)]
            words = [*ungil, "-o", str(trace), "--", *words]
        process = subprocess.Popen(words)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        measured: Measured = {"cpu_s": usage.ru_utime + usage.ru_stime, "looks": 0, "bytes": 0}
        if variant is TRACED:
            (gil,) = json.loads(told.read_text(encoding="utf-8"))["processes"][0]["gils"]
            places = [place for thread in gil["threads"] for place in thread["off_gil"]]
            measured["looks"] = sum(place["gaps"] + place["samples"] for place in places)
            measured["bytes"] = trace.stat().st_size
    return measured


def _shares(runs: Runs) -> list[float]:
    """The part of one core that ungil took in each round."""
    pairs = [(it[TRACED.name], it[BARE.name]) for it in runs.rounds]
    return [(one["cpu_s"] - other["cpu_s"]) / SECONDS for one, other in pairs]


def _table(runs: Runs) -> Table:
    """What it took, and what it showed."""
    table = columns("", runs.setting, "looks told", "trace kB/s", "share of a core")
    looks = runs.each(TRACED, lambda it: it["looks"])
    kilobytes = [size / 1e3 / SECONDS for size in runs.each(TRACED, lambda it: it["bytes"])]
    table.add_row("", f"{statistics.median(looks):.0f}", spread(kilobytes), spread(_shares(runs)))
    return table


def _targets(all_runs: list[Runs]) -> Iterator[Target]:
    """That looking is cheap."""
    worst = max(statistics.median(_shares(runs)) for runs in all_runs)
    claim = f"recording 200 threads that are off the GIL takes less than {MOST_SHARE} of a core"
    yield Target(claim, worst < MOST_SHARE, f"{worst:.3f}")


if __name__ == "__main__":
    main()
