"""What a run of the gallery found, in numbers, and the file that keeps the newest of each case."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gallery_runs import UNGIL, VARIANTS, Case
from interleaving import Measured, Runs, quantile
from peers import STOCK, Variant
from pydantic import TypeAdapter
from working import pace, work

KEPT = Path(__file__).parent / "gallery.json"
# The goal: a 99th percentile so many times better, at so much of stock's work.
LEAST_GAIN = 5.0
LEAST_WORK = 0.97
# With fewer, a median means little.
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Spread:
    """A ratio in each round: its median, its least and its greatest."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Of at least one value; 0 where there is none, because stock did nothing."""
        if not values:
            return cls(0.0, 0.0, 0.0)
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        """As it stands in a table."""
        return f"{self.median:.2f} ({self.least:.2f} to {self.most:.2f})"


@dataclass(frozen=True)
class Cell:
    """One variant in one setting. Delays are those of all rounds."""

    delays: int
    p50_ms: float
    p99_ms: float
    gain: Spread
    """Stock's 99th percentile divided by this one's, of the same round."""
    work: Spread
    """Calls per second of processor time, as a ratio to stock's."""
    pace: Spread
    """Calls per second, as a ratio to stock's."""
    counted: dict[str, int]
    """What else the case counts."""


@dataclass(frozen=True)
class Row:
    """One setting of a case."""

    setting: str
    is_beyond: bool
    """Whether no scheduler of the GIL can help much here."""
    load_p99_ms: float
    """How late the load itself woke up; 0 where the program measures itself."""
    kept_disturbed: int
    """Measurements that other work disturbed, and that were kept."""
    cells: dict[str, Cell]
    """By the name of the variant."""

    def reaches_the_goal(self) -> bool:
        """Whether `ungil run` gains as much as it should, and keeps the work."""
        return self.cells[UNGIL.name].gain.median >= LEAST_GAIN and self.keeps_the_work()

    def keeps_the_work(self) -> bool:
        """Whether it does as much of stock's work as it should, in the digits that are shown."""
        return round(self.cells[UNGIL.name].work.median, 2) >= LEAST_WORK


@dataclass(frozen=True)
class Found:
    """A case's newest run."""

    environment: dict[str, str]
    rounds: int
    seconds: float
    rows: list[Row]

    def doubts(self) -> list[str]:
        """Why its figures are provisional, if they are."""
        measurements = self.rounds * len(VARIANTS) * len(self.rows)
        disturbed = sum(row.kept_disturbed for row in self.rows)
        doubts: list[str] = []
        if disturbed:
            doubts.append(f"other work disturbed {disturbed} of {measurements} measurements")
        if self.rounds < LEAST_ROUNDS:
            doubts.append("one round" if self.rounds == 1 else f"{self.rounds} rounds")
        if not self.environment["commit"].isalnum():
            doubts.append("the commit had local changes")
        return doubts


_FILE = TypeAdapter(dict[str, Found])


def row(case: Case, setting: str, runs: Runs) -> Row:
    """What the rounds of a setting found."""
    own_ms = sorted(
        value
        for variant in VARIANTS
        for measured in (round_[variant.name] for round_ in runs.rounds)
        for value in measured.get("own_ms", [])
    )
    return Row(
        setting,
        setting in case.beyond,
        quantile(own_ms, 0.99) if own_ms else 0.0,
        runs.kept_disturbed,
        {variant.name: _cell(case, runs, variant) for variant in VARIANTS},
    )


def _cell(case: Case, runs: Runs, variant: Variant) -> Cell:
    """A variant in all rounds."""
    late_ms = sorted(value for round_ in runs.rounds for value in _late_ms(round_[variant.name]))

    def ratio(of: Callable[[Measured], float]) -> Spread:
        return Spread.of(runs.ratios(variant, STOCK, of))

    return Cell(
        len(runs.pooled(variant, "late_ms")),
        quantile(late_ms, 0.5),
        quantile(late_ms, 0.99),
        Spread.of(runs.ratios(STOCK, variant, _p99)),
        ratio(work),
        ratio(pace),
        {name: sum(round_[variant.name][name] for round_ in runs.rounds) for name in case.counts},
    )


def _p99(measured: Measured) -> float:
    """Of one measurement."""
    return quantile(sorted(_late_ms(measured)), 0.99)


def _late_ms(measured: Measured) -> list[float]:
    """The delays. Where nothing was done in time, they are at least as long as that time."""
    return measured["late_ms"] or [measured["wall_s"] * 1e3]


def keep(found: Mapping[str, Found]) -> dict[str, Found]:
    """Put new results into the file; returns all that it has now. Older ones of a case go."""
    everything = {**kept(), **found}
    write(KEPT, _FILE.dump_json(everything, indent=1).decode() + "\n")
    return everything


def kept() -> dict[str, Found]:
    """What the file has."""
    return _FILE.validate_json(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def write(path: Path, text: str) -> None:
    """The whole file or none of it."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
