"""What `make demo` shows, measured: a web server, beside a thread that computes and without one.

    python bench/convoy.py [--rounds N] [--python PATH] [--json FILE] [--quick]

`examples/convoy_server.py` as its users start it. Its client sends one request after the other for
four seconds, so a quicker server gets more. `without` is the server without the computing thread:
more than that no scheduler can give. Nothing is pinned.
"""

import argparse
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from peers import INTERACTIVE, INTERVALS, STOCK
from peers import Variant as Scheduling
from rich.table import Table
from sampling import Failed
from surroundings import spread

EXAMPLE = Path(__file__).parent.parent / "examples/convoy_server.py"
# The example has no option for a switch interval, as few programs have.
WITH_INTERVAL = """
import runpy, sys
sys.setswitchinterval(float(sys.argv[1]))
sys.argv[:2] = []
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SAYS = r"(\d+) requests in \d+ s: median ([\d.]+) ms, p99 ([\d.]+) ms"


@dataclass(frozen=True)
class Variant:
    """A way to run the server."""

    name: str
    scheduling: Scheduling = STOCK
    options: tuple[str, ...] = ()


BARE, INTERVAL = Variant("stock"), Variant(INTERVALS[-1].name, INTERVALS[-1])
UNGIL, ALONE = Variant("interactive", INTERACTIVE), Variant("without", options=("--no-report",))
VARIANTS = [BARE, INTERVAL, UNGIL, ALONE]


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=5))
    report(options, ["ungil", "waitress"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """There is one setting."""

    def measure(variant: Variant) -> Measured:
        return _served(options.python, variant, 1 if options.quick else 4)

    runs = interleave("requests of one client", VARIANTS, measure, options)
    yield runs, _table(runs)


def _served(python: str, variant: Variant, seconds: int) -> Measured:
    """What the client says."""
    interval_s = variant.scheduling.interval_s
    before = [] if interval_s is None else ["-c", WITH_INTERVAL, str(interval_s)]
    words = [python, *before, EXAMPLE, "--seconds", str(seconds), *variant.options]
    ended = subprocess.run(
        words, env=variant.scheduling.environment(), capture_output=True, text=True, check=False
    )
    said = re.search(SAYS, ended.stdout)
    if ended.returncode != 0 or said is None:
        raise Failed(f"{variant.name}: {ended.stderr or ended.stdout}")
    count, median_ms, p99_ms = map(float, said.groups())
    return {"per_s": count / seconds, "median_ms": median_ms, "p99_ms": p99_ms}


def _per_s(measured: Measured) -> float:
    return measured["per_s"]


def _table(runs: Runs) -> Table:
    """Requests, how long they took, and what part of the best there can be."""
    table = columns(
        f"{runs.setting}, medians of the rounds",
        *("", "requests/s", "median ms", "p99 ms", "to stock's", "of those without"),
    )
    for variant in VARIANTS:
        table.add_row(
            variant.name,
            spread(runs.each(variant, _per_s)),
            f"{runs.median(variant, lambda it: it['median_ms']):.1f}",
            f"{runs.median(variant, lambda it: it['p99_ms']):.1f}",
            spread(runs.ratios(variant, BARE, _per_s)),
            spread(runs.ratios(variant, ALONE, _per_s)),
        )
    return table


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The issue of the demo sets no number: more than with the interval that everybody knows."""
    for runs in taken:
        seen = runs.ratios(UNGIL, INTERVAL, _per_s)
        claim = f"more requests than with {INTERVAL.name}, times as many"
        yield Target(claim, statistics.median(seen) > 1, spread(seen))


if __name__ == "__main__":
    main()
