"""How often `ungil diff` takes noise for a change, and how often it misses one.

Two sides are drawn from one distribution of noise, so each change that is told is a false alarm;
then the second side is made twice as large, so each one that is not told is a miss. Printed by the
number of runs of each side, for noise of several kinds, and the factors that make it one false
alarm in a hundred with normal noise (`ungil/comparison/noise.py`). The last kind is what few runs
cannot see: modes that differ by more than a change has to.

    python bench/diff_noise.py              # what the factors of today do
    python bench/diff_noise.py --factors    # and make them anew
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from statistics import median

from surroundings import print_environment

from ungil.comparison.metrics import WAITED
from ungil.comparison.noise import FACTORS, MOST_RUNS, judge

TIMES = 20_000
CENTRE = 0.3
SPREAD = 0.1

Draw = Callable[[random.Random], float]

NOISES: dict[str, Draw] = {
    "normal": lambda chance: max(chance.gauss(CENTRE, SPREAD * CENTRE), 0.0),
    "log-normal": lambda chance: CENTRE * chance.lognormvariate(0, 2 * SPREAD),
    "one run in ten is twice as long": lambda chance: (
        max(chance.gauss(CENTRE, SPREAD * CENTRE), 0.0) * (2 if chance.random() < 0.1 else 1)
    ),
    "two modes": lambda chance: (
        CENTRE * (1 if chance.random() < 0.5 else 1.5) + chance.gauss(0, SPREAD * CENTRE / 3)
    ),
    "two modes, three times apart": lambda chance: (
        CENTRE * (1 if chance.random() < 0.5 else 3) + chance.gauss(0, SPREAD * CENTRE / 3)
    ),
}
PARTS = 10
"""Of a run, each with half the noise of a run, if there is one run of each side."""


def main() -> None:
    """Print all rates."""
    print_environment(["ungil"])
    if "--factors" in sys.argv[1:]:
        print_factors()
    print(f"{TIMES:,} comparisons each; told changes in percent")
    print(f"{'noise':34}{'runs':>7}{'false alarms':>14}{'of twice as much':>18}")
    for name, draw in NOISES.items():
        for runs in (1, 2, 3, 5, 8):
            alarms, seen = rate(draw, runs, 1.0), rate(draw, runs, 2.0)
            print(f"{name:34}{f'{runs} v {runs}':>7}{alarms:>13.2f}%{seen:>17.1f}%")


def rate(draw: Draw, runs: int, times_more: float) -> float:
    """How many of a hundred comparisons tell a change, if the second side is so much larger."""
    chance = random.Random(runs)
    told = 0
    for _ in range(TIMES):
        before = [draw(chance) for _ in range(runs)]
        after = [draw(chance) * times_more for _ in range(runs)]
        parts = None if runs > 1 else (_parts(before[0], chance), _parts(after[0], chance))
        told += judge(WAITED, before, after, parts).changed
    return 100 * told / TIMES


def _parts(run: float, chance: random.Random) -> list[float]:
    return [max(run * chance.gauss(1, SPREAD / 2), 0.0) for _ in range(PARTS)]


def print_factors() -> None:
    """The 99th percentile of the distance of medians in ranges, with normal noise."""
    chance = random.Random(7)
    for fewer in range(1, MOST_RUNS + 1):
        for more in range(max(fewer, 2), MOST_RUNS + 1):
            found: list[float] = []
            for _ in range(TIMES):
                sides = [[chance.gauss(0, 1) for _ in range(size)] for size in (fewer, more)]
                widest = max(max(side) - min(side) for side in sides if len(side) > 1)
                found.append(abs(median(sides[0]) - median(sides[1])) / widest)
            factor = sorted(found)[int(0.99 * TIMES)]
            print(f"({fewer}, {more}): {factor:.2f}, today {FACTORS[fewer, more]}")


if __name__ == "__main__":
    main()
