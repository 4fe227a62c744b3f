"""Whether two sides differ by more than runs of one side differ from each other.

The runs of a side are the only witnesses of the noise, and there are few of them. So the test is
one that few runs can feed and a reader can check: the distance of the two medians, against the
largest difference between two runs of one side (the *range*). With normal noise the distance is
larger than `FACTORS` times the range in one of a hundred comparisons of two equal sides. And
hardly a run may lie where the other side has its median.
Few runs can all fall into one mode of a program, and then no range tells of the other: so of few
runs only a change that is larger than most modes is believed (`MODES`).
Of one run a side only its parts tell, without those in which the program starts or ends. That
misses what differs from run to run, so there `MODES` counts most.
`bench/diff_noise.py` measures that, also for noise that is not normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean, median
from typing import Literal

from ungil.comparison.metrics import Metric

Verdict = Literal["better", "worse", "more", "less", "within noise", "unknown"]
Basis = Literal["runs", "parts"]

# fmt: off
FACTORS: dict[tuple[int, int], float] = {
    (1, 2): 59.4, (1, 3): 6.02, (1, 4): 2.93, (1, 5): 2.06, (1, 6): 1.62, (1, 7): 1.46,
    (1, 8): 1.32, (2, 2): 5.84, (2, 3): 2.59, (2, 4): 1.73, (2, 5): 1.42, (2, 6): 1.18,
    (2, 7): 1.02, (2, 8): 0.93, (3, 3): 1.74, (3, 4): 1.29, (3, 5): 1.1, (3, 6): 0.98,
    (3, 7): 0.92, (3, 8): 0.82, (4, 4): 1.08, (4, 5): 0.93, (4, 6): 0.82, (4, 7): 0.76,
    (4, 8): 0.69, (5, 5): 0.85, (5, 6): 0.75, (5, 7): 0.68, (5, 8): 0.64, (6, 6): 0.66,
    (6, 7): 0.64, (6, 8): 0.59, (7, 7): 0.61, (7, 8): 0.55, (8, 8): 0.51,
}
# fmt: on
"""By the number of runs of both sides, the smaller first."""
MOST_RUNS = 8
"""More runs than these on one side count as that many: the range only grows with them."""
HOPELESS = 10.0
"""With a larger factor nothing real is larger than the noise."""
MODES: tuple[tuple[int, float], ...] = ((5, 2.5), (6, 1.6))
"""Of so many runs in all, or fewer, a change has to be by so large a factor.

If a program has two modes that are equally likely, all of n runs fall so that each side shows one
of them in one of 2**(n - 1) comparisons: in 12.5 % with two runs of each side, in 3.1 % with three,
in less than 2 % from seven runs on."""
MODES_ALARM = 0.02
"""In so many comparisons two modes that are equally likely may pass for a change."""
STRAY = 0.25
"""A run lies where the other side has its median if it is nearer than this part of the change."""
LEAST_PARTS = 3
"""So many parts of a run show how much it differs from itself, at least."""
OUTER = 0.2
"""So many of the parts (of 1) with the lowest numbers, and with the highest, are not typical."""
IDLE = 0.1
"""A run begins and ends with parts that have less than so much (of 1) of what most have."""
TOLD_APART = 1.5
"""Two runs that differ by such a factor, though not by more than that noise, may be a change."""


@dataclass(frozen=True)
class Judged:
    """One number of both sides."""

    metric: Metric
    before: list[float | None]
    """By run; None where it is not known."""
    after: list[float | None]
    before_median: float | None
    after_median: float | None
    noise: float | None
    """A smaller difference may be chance; None if that is not known."""
    basis: Basis | None
    """What the noise was seen in; None if it was not."""
    verdict: Verdict

    @property
    def difference(self) -> float | None:
        """After less before."""
        if self.before_median is None or self.after_median is None:
            return None
        return self.after_median - self.before_median

    @property
    def changed(self) -> bool:
        """Whether it differs by more than the noise."""
        return self.verdict not in {"within noise", "unknown"}


def judge(
    metric: Metric,
    before: Sequence[float | None],
    after: Sequence[float | None],
    parts: tuple[Sequence[float | None], Sequence[float | None]] | None,
) -> Judged:
    """Compares a number by run; with one run a side also by the parts of it."""
    known_before, known_after = _known(before), _known(after)
    middles = tuple(median(side) if side else None for side in (known_before, known_after))
    before_median, after_median = middles
    noise: float | None = None
    basis: Basis | None = None
    if len(before) == 1 and len(after) == 1:
        if parts is not None:
            noise, basis = _noise_of_parts(_known(parts[0]), _known(parts[1]), middles), "parts"
    else:
        noise, basis = _noise_of_runs(known_before, known_after), "runs"
    verdict: Verdict = "unknown"
    if before_median is not None and after_median is not None and noise is not None:
        least = max(metric.least, metric.least_share * max(before_median, after_median))
        noise = max(noise, least)
        verdict = _verdict(metric, after_median - before_median, noise)
        if basis == "runs" and not _are_apart(known_before, known_after):
            verdict = "within noise"
        runs = len(known_before) + len(known_after)
        apart = max(before_median, after_median) - min(before_median, after_median)
        if basis == "parts" and verdict == "within noise" and apart > least:
            # The noise is large, and not the change small.
            if not _are_within(TOLD_APART, before_median, after_median):
                verdict = "unknown"
        elif verdict != "within noise" and _may_be_modes(before_median, after_median, runs):
            verdict = "unknown"
    elif before_median is not None and before_median == after_median:
        verdict = "within noise"
    return Judged(
        metric,
        list(before),
        list(after),
        before_median,
        after_median,
        noise,
        basis if noise is not None else None,
        verdict,
    )


def _verdict(metric: Metric, difference: float, noise: float) -> Verdict:
    if abs(difference) <= noise:
        return "within noise"
    if metric.better == "neither":
        return "more" if difference > 0 else "less"
    return "worse" if difference > 0 else "better"


def _are_apart(before: list[float], after: list[float]) -> bool:
    """Whether hardly a run lies where the other side has its median.

    Where runs have two modes, the median jumps from one to the other, and no range tells of that.
    """
    small, large = sorted((before, after), key=median)
    low, high = median(small), median(large)
    margin = STRAY * (high - low)
    strays = sum(run >= high - margin for run in small) + sum(run <= low + margin for run in large)
    return strays <= _strays(len(before) + len(after))


def _strays(runs: int) -> int:
    """How many runs may lie there, if two modes are to look so in `MODES_ALARM` of comparisons."""
    most = 0
    while 2 ** (1 - runs) * sum(comb(runs, count) for count in range(most + 2)) <= MODES_ALARM:
        most += 1
    return most


def _may_be_modes(before: float, after: float, runs: int) -> bool:
    """Whether so few runs can differ so much because a program has two modes."""
    factor = next((factor for most, factor in MODES if runs <= most), 1.0)
    return _are_within(factor, before, after)


def _are_within(factor: float, before: float, after: float) -> bool:
    return max(before, after) < factor * min(before, after)


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _noise_of_runs(before: list[float], after: list[float]) -> float | None:
    """What the medians of two equal sides differ by at most, in 99 of 100 comparisons."""
    ranges = [_range(side) for side in (before, after) if len(side) > 1]
    if not ranges or not before or not after:
        return None
    fewer, more = sorted(min(len(side), MOST_RUNS) for side in (before, after))
    factor = FACTORS[fewer, more]
    return None if factor > HOPELESS else factor * max(ranges)


def _noise_of_parts(
    before: list[float], after: list[float], runs: tuple[float | None, ...]
) -> float | None:
    """How much typical parts of each run differ from its mean, towards the other run, in both."""
    if min(len(before), len(after)) < LEAST_PARTS:
        return None
    is_more = (runs[0] or 0.0) <= (runs[1] or 0.0)
    small, large = map(_busy, (before, after) if is_more else (after, before))
    highest = sorted(small)[len(small) - 1 - int(OUTER * len(small))]
    lowest = sorted(large)[int(OUTER * len(large))]
    return max(highest - fmean(small), 0.0) + max(fmean(large) - lowest, 0.0)


def _busy(parts: list[float]) -> list[float]:
    """The parts between those in which the program starts and ends."""
    least = IDLE * median(parts)
    busy = [number for number, value in enumerate(parts) if value >= least]
    return parts[busy[0] : busy[-1] + 1]
