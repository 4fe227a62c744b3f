"""What the hook costs libraries that are linked into an interpreter, as those that uv installs are.

    python bench/static_interpreter.py [--rounds N] [--python PATH] [--json FILE] [--quick]

The locks of OpenSSL, SQLite and Tcl then go through the slots that the hook redirects for the GIL.
CPU time of a fixed amount of work as a ratio to the mean of both bare runs of the same round, in a
program whose other thread waits. As much as `stock`, the first of a round, and `bare again` differ
is noise. Four threads run on one processor: on two, the same work takes up to 40 % more or less CPU
time, by how they share caches. Work that lets go of the GIL pays for that too, as in any
interpreter: the titles say how often, and `queries`, which does so millions of times a second, is
what ungil loses. What lets go of it 50,000 times a second or more has no target here:
bench/trace_overhead.py and bench/single_thread.py measure that. PATH is the interpreter that `make
built-pythons` has built, unless it is named. Tk's windows are drawn on $DISPLAY, or by Xvfb.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import BARE_AGAIN, FOLDER, INTERACTIVE, STANDBY, STOCK, Variant
from rich.table import Table
from sampling import sample
from surroundings import spread

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from built_pythons import built


@dataclass(frozen=True)
class Traced(Variant):
    """Recorded."""


TRACED = Traced("traced")
VARIANTS = [STOCK, BARE_AGAIN, TRACED, INTERACTIVE, STANDBY]
HOOKED = [TRACED, INTERACTIVE, STANDBY]
MOST_COST = 1.02
# A release and an acquire cost some 100 ns more, so this many are 0.5 %.
MANY_RELEASES = 50_000


@dataclass(frozen=True)
class Setting:
    """A kind of work, how much of it, and in how many threads."""

    kind: str
    count: int
    threads: int = 1

    def __str__(self) -> str:
        return self.kind if self.threads == 1 else f"{self.kind}, {self.threads} threads, pinned"

    def command(self, python: str, *, quick: bool) -> list[str]:
        """What does it."""
        count = self.count // 20 if quick else self.count
        words = [python, str(FOLDER / "linked_in.py"), self.kind, str(count), str(self.threads)]
        return words if self.threads == 1 else ["taskset", "--cpu-list", first_processor(), *words]


SETTINGS = [
    Setting("handshakes", 1_000),
    Setting("handshakes", 1_000, 4),
    Setting("digests", 500_000),
    Setting("aggregates", 300),
    Setting("aggregates", 300, 4),
    Setting("queries", 300_000),
    Setting("events", 50_000),
    Setting("windows", 20_000),
]


def main() -> None:
    """Measures and prints."""
    made = parser(__doc__, rounds=31)
    found = built("static")
    made.set_defaults(python=str(found) if found else None)
    names = [str(setting) for setting in SETTINGS]
    made.add_argument("--setting", choices=names, action="append", help="instead of all")
    options = parse(made)
    if options.python is None:
        made.error("there is no static interpreter: make built-pythons, or name one with --python")
    need_display()
    report(options, ["ungil"], _sections(options), _targets)


def need_display() -> None:
    """Begin again with a display for Tk, unless there is one."""
    if os.environ.get("DISPLAY"):
        return
    if shutil.which("xvfb-run") is None:
        sys.exit("Tk needs a display: set DISPLAY, or apt-get install xvfb xauth")
    # As a parent: what this process has as a child, it waits for after each sample.
    os.execvp("xvfb-run", ["xvfb-run", "-a", sys.executable, *sys.argv])


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """One for each setting."""
    with tempfile.TemporaryDirectory(prefix="ungil-static-") as folder:
        for setting in SETTINGS:
            if options.setting and str(setting) not in options.setting:
                continue
            words = setting.command(options.python, quick=options.quick)
            trace = Path(folder, "trace")

            def measure(variant: Variant, words: list[str] = words, to: Path = trace) -> Measured:
                if variant is not TRACED:
                    return vars(sample(words, variant.environment()))
                measured = vars(sample(traced(words, to), variant.environment()))
                return {**measured, "releases": releases(to)}

            runs = interleave(str(setting), VARIANTS, measure, options)
            yield runs, _table(runs)


def first_processor() -> str:
    """The first that this process may use."""
    return str(min(os.sched_getaffinity(0)))


def traced(words: Sequence[str], to: Path) -> list[str]:
    """The command that records this one."""
    tool = [sys.executable, "-m", "ungil", "trace", "-q", "-f", "-o", str(to)]
    return [*tool, "--json", f"{to}.json", "--", *words]


def releases(trace: Path) -> int:
    """How often the recorded threads let go of the GIL."""
    told = json.loads(Path(f"{trace}.json").read_text(encoding="utf-8"))
    threads: list[dict[str, Any]] = [
        thread for it in told["processes"] for gil in it["gils"] for thread in gil["threads"]
    ]
    return sum(it["voluntary"] + it["forced"] for it in threads)


def _cpu(measured: Measured) -> float:
    """CPU seconds of the work."""
    return measured["cpu_s"]


def _ratios(runs: Runs, variant: Variant) -> list[float]:
    """CPU time in each round as a ratio to the mean of its two bare runs."""
    bare = zip(runs.each(STOCK, _cpu), runs.each(BARE_AGAIN, _cpu), strict=True)
    return [it / statistics.mean(of) for it, of in zip(runs.each(variant, _cpu), bare, strict=True)]


def _rate(runs: Runs) -> float:
    """Releases of the GIL per second of work."""
    return runs.median(TRACED, lambda it: it["releases"]) / runs.median(STOCK, _cpu)


def _table(runs: Runs) -> Table:
    table = columns(
        f"{runs.setting}: {_rate(runs):,.0f} releases of the GIL per second",
        *("", "CPU time", "ratio to bare"),
    )
    for variant in VARIANTS:
        ratios = _ratios(runs, variant)
        table.add_row(variant.name, f"{runs.median(variant, _cpu):.3f} s", spread(ratios))
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """What the locks of libraries pay."""
    for runs in taken:
        if _rate(runs) >= MANY_RELEASES:
            continue
        noise = spread(_ratios(runs, BARE_AGAIN))
        for variant in HOOKED:
            ratios = _ratios(runs, variant)
            yield Target(
                f"{runs.setting}: CPU time of {variant.name} at most {MOST_COST} of bare",
                statistics.median(ratios) <= MOST_COST,
                f"{spread(ratios)}, bare again {noise}",
            )


if __name__ == "__main__":
    main()
