"""Rounds of measurements that take turns, and what is made of them.

Each round measures every variant once (A B C, A B C, ...), and a variant is divided by another of
the same round: a shared machine changes its speed within seconds. Where somebody else took part of
the machine meanwhile, the measurement is repeated, a limited number of times.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.table import Table
from sampling import adopt_orphans, children_cpu, disturbance, machine, wait_for_quiet
from surroundings import print_environment

# Before each measurement, for other processes of the machine to pause.
PATIENCE_S = 2.0
# Wide enough for the tables when the output goes to a file.
WIDTH = 160

Measured = dict[str, Any]
# The key of what is measured of a variant that cannot be measured: why.
BROKE = "broke"


class Variant(Protocol):
    """One of the things that are compared."""

    @property
    def name(self) -> str:
        """What it is called in the tables."""


V = TypeVar("V", bound=Variant)


@dataclass
class Runs:
    """What was measured in one setting: a result of each variant in each round."""

    setting: str
    rounds: list[dict[str, Measured]] = field(default_factory=list[dict[str, Measured]])
    repeated: dict[str, int] = field(default_factory=dict[str, int])
    """Measurements that were thrown away, by what disturbed them."""
    kept_disturbed: int = 0
    """Disturbed measurements that were kept, because the repetitions were used up."""

    def each(self, variant: Variant, of: Callable[[Measured], float]) -> list[float]:
        """A figure of `variant` in each round."""
        return [of(round_[variant.name]) for round_ in self.rounds]

    def median(self, variant: Variant, of: Callable[[Measured], float]) -> float:
        """Its median."""
        return statistics.median(self.each(variant, of))

    def ratios(
        self, variant: Variant, base: Variant, of: Callable[[Measured], float]
    ) -> list[float]:
        """A figure of `variant` divided by that of `base` in the same round."""
        pairs = zip(self.each(variant, of), self.each(base, of), strict=True)
        return [one / other for one, other in pairs if other > 0]

    def pooled(self, variant: Variant, name: str) -> list[float]:
        """The figures of a list in all rounds, sorted."""
        return sorted(value for round_ in self.rounds for value in round_[variant.name][name])

    def disturbed(self) -> str:
        """How many measurements were, in words."""
        counts = [f"{count} {what}" for what, count in sorted(self.repeated.items())]
        repeated = ", ".join(counts) or "none"
        return (
            f"{len(self.rounds)} rounds; disturbed measurements: "
            f"{repeated} repeated, {self.kept_disturbed} kept"
        )


def interleave(
    setting: str,
    variants: Sequence[V],
    measure: Callable[[V], Measured],
    options: argparse.Namespace,
) -> Runs:
    """Measure all variants in each round, as long as they work. Progress goes to stderr."""
    runs = Runs(setting)
    for number in range(options.rounds):
        round_: dict[str, Measured] = {}
        for variant in variants:
            show(f"{setting}: round {number + 1} of {options.rounds}, {variant.name}")
            if number > 0 and BROKE in runs.rounds[-1][variant.name]:
                # To find out that it cannot be measured can take minutes.
                round_[variant.name] = runs.rounds[-1][variant.name]
                continue
            round_[variant.name] = _undisturbed(runs, variant, measure, options.repetitions)
        runs.rounds.append(round_)
    show("")
    return runs


def _undisturbed(
    runs: Runs, variant: V, measure: Callable[[V], Measured], repetitions: int
) -> Measured:
    """A measurement, taken again if it was disturbed and `repetitions` are left."""
    while True:
        if repetitions > 0:
            wait_for_quiet(PATIENCE_S)
        before, own_s = machine(), children_cpu()
        measured = measure(variant)
        after, own_s = machine(), children_cpu() - own_s
        foreign_s = max(0.0, after.busy_s - before.busy_s - own_s)
        disturbed_by = disturbance(after.stolen_s - before.stolen_s, foreign_s, own_s)
        if disturbed_by is None or sum(runs.repeated.values()) >= repetitions:
            runs.kept_disturbed += disturbed_by is not None
            return measured
        runs.repeated[disturbed_by] = runs.repeated.get(disturbed_by, 0) + 1


def show(progress: str) -> None:
    """Replace the line of progress, if somebody is watching."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)
    elif progress:
        print(progress, file=sys.stderr, flush=True)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The least value that at least `share` of the values do not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


@dataclass(frozen=True)
class Target:
    """Something that is to be shown."""

    claim: str
    is_met: bool
    seen: str

    def line(self) -> str:
        """In words."""
        return f"{'met    ' if self.is_met else 'NOT MET'}  {self.claim}: {self.seen}"


def parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options that all of these scripts have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=rounds, help=f"[{rounds}]")
    made.add_argument(
        "--repetitions",
        type=int,
        default=20,
        help="of disturbed measurements in a setting [20]; 0: nor any waiting for quiet",
    )
    made.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="runs the programs [this one]"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement")
    made.add_argument("--quick", action="store_true", help="little of everything: a smoke run")
    return made


def parse(made: argparse.ArgumentParser) -> argparse.Namespace:
    """What was asked for."""
    options = made.parse_args()
    if options.quick:
        options.rounds, options.repetitions = 2, 0
    return options


def report(
    options: argparse.Namespace,
    packages: Sequence[str],
    sections: Iterable[tuple[Runs, Table]],
    targets: Callable[[list[Runs]], Iterator[Target]],
) -> None:
    """Measure (`sections` does, as it is iterated over), and print a table after each setting."""
    adopt_orphans()
    known = print_environment(packages, options.python)
    console = Console(width=WIDTH, highlight=False)
    taken: list[Runs] = []
    for runs, table in sections:
        taken.append(runs)
        console.print()
        console.print(table)
        console.print(f"{runs.setting}: {runs.disturbed()}", markup=False, soft_wrap=True)
    console.print()
    found = list(targets(taken))
    for target in found:
        console.print(target.line(), markup=False, soft_wrap=True)
    if options.json is not None:
        written = {
            "environment": known,
            "settings": [vars(runs) for runs in taken],
            "targets": [vars(target) for target in found],
        }
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def columns(title: str, *names: str) -> Table:
    """An empty table, the first column of which is words."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(names[0], no_wrap=True)
    for name in names[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table
