"""Whether two sides differ by more than the noise, against a model that knows only the rule."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ungil.comparison.metrics import METRICS, WAITED
from ungil.comparison.noise import FACTORS, HOPELESS, MOST_RUNS, judge

HELD = next(metric for metric in METRICS if metric.key == "held")
NUMBERS = st.floats(0, 100, allow_nan=False)
SIDE = st.lists(NUMBERS, min_size=1, max_size=6)


def middle(values: list[float]) -> float:
    """The median, by leaving out the smallest and the largest until one or two are left."""
    left = list(values)
    while len(left) > 2:
        left.remove(min(left))
        left.remove(max(left))
    return sum(left) / len(left)


def naive(before: list[float], after: list[float]) -> str:
    """The verdict about a time, in the words of `docs/diff.md`."""
    pairs = [abs(a - b) for side in (before, after) for a, b in combinations(side, 2)]
    factor = FACTORS.get((min(len(before), len(after)), max(len(before), len(after))))
    if not pairs or factor is None or factor > HOPELESS:
        return "within noise" if middle(before) == middle(after) else "unknown"
    difference = middle(after) - middle(before)
    larger = max(middle(before), middle(after))
    if abs(difference) <= max(max(pairs) * factor, 0.002, 0.05 * larger):
        return "within noise"
    # In words of the larger and the smaller side.
    small, large = sorted((before, after), key=middle)
    near = abs(difference) / 4
    strays = [run for run in small if run >= middle(large) - near]
    strays += [run for run in large if run <= middle(small) + near]
    if len(strays) > (0 if len(before) + len(after) < 11 else 1):
        return "within noise"
    times = {2: 2.5, 3: 2.5, 4: 2.5, 5: 2.5, 6: 1.6}.get(len(before) + len(after), 1.0)
    if larger < times * min(middle(before), middle(after)):
        return "unknown"
    return "worse" if difference > 0 else "better"


@given(SIDE, SIDE)
def test_verdicts_of_several_runs_are_those_of_the_naive_model(
    before: list[float], after: list[float]
) -> None:
    if len(before) == len(after) == 1:
        return
    assert judge(WAITED, before, after, None).verdict == naive(before, after)


@given(SIDE, SIDE)
def test_to_swap_the_sides_swaps_better_and_worse(before: list[float], after: list[float]) -> None:
    swapped = {"better": "worse", "worse": "better"}
    there, back = judge(WAITED, before, after, None), judge(WAITED, after, before, None)
    assert swapped.get(there.verdict, there.verdict) == back.verdict


def naive_noise(smaller: list[float], larger: list[float]) -> float:
    """How far the parts of two runs are from their means, towards each other, by the document."""
    noise = 0.0
    for parts, sign in ((smaller, 1), (larger, -1)):
        work = list(parts)
        least = sorted([*parts, *parts])[len(parts) - 1 : len(parts) + 1]
        for end in (0, -1):
            while work[end] < sum(least) / 20:
                work.pop(end)
        towards = sorted(sign * part for part in work)
        mean = sum(towards) / len(towards)
        for _ in range(len(work) // 5):
            towards.pop()
        noise += max(towards[-1] - mean, 0)
    return noise


@given(st.lists(NUMBERS, min_size=3, max_size=10), st.lists(NUMBERS, min_size=3, max_size=10))
def test_one_run_a_side_is_compared_with_what_its_parts_differ_by(
    before: list[float], after: list[float]
) -> None:
    runs = [middle(before), middle(after)]
    judged = judge(WAITED, runs[:1], runs[1:], (before, after))
    smaller, larger = (before, after) if runs[0] <= runs[1] else (after, before)
    small, large = sorted(runs)
    noise = max(naive_noise(smaller, larger), 0.002, 0.05 * large)
    assert judged.noise == pytest.approx(noise)
    if large - small > max(0.002, 0.05 * large) and not large < 1.5 * small:
        assert judged.verdict != "within noise"
    if judged.changed:
        assert large - small > 0.99 * noise
        assert large >= 2.5 * small


def test_the_parts_in_which_a_program_starts_and_ends_are_no_noise() -> None:
    after = [0.15, 0.03, 0.06, 0.03, 0.01, 0.05, 0.0]

    def verdict(before: list[float]) -> str:
        means = [sum(before) / len(before)], [sum(after) / len(after)]
        return judge(WAITED, *means, (before, after)).verdict

    assert verdict([0.0, 3.0, 3.2, 2.8, 2.7, 3.6, 0.1, 0.0, 0.0]) == "better"
    # In between they are.
    assert verdict([3.0, 0.0, 0.0, 3.2, 0.0, 2.7, 0.1, 3.6]) == "unknown"


def test_one_run_a_side_may_be_a_change_that_its_parts_do_not_show() -> None:
    before, after = [1.0, 9.0, 1.0, 9.0, 1.0], [1.0, 4.0, 1.0, 4.0, 1.0]
    assert judge(WAITED, [4.2], [2.2], (before, after)).verdict == "unknown"
    assert judge(WAITED, [4.2], [4.0], (before, after)).verdict == "within noise"


def test_two_parts_a_side_are_too_few_to_tell() -> None:
    assert judge(WAITED, [1.0], [2.0], ([1.0, 1.0], [2.0, 2.0])).verdict == "unknown"


def test_what_is_not_known_in_a_run_is_left_out_of_its_side() -> None:
    judged = judge(WAITED, [None, 1.0, 1.0, 1.01], [2.0, None, 2.0, 2.01], None)
    assert (judged.before_median, judged.after_median, judged.verdict) == (1.0, 2.0, "worse")
    assert judge(WAITED, [None, None], [1.0, 1.0], None).verdict == "unknown"


def test_a_number_that_is_neither_good_nor_bad_is_more_or_less() -> None:
    assert judge(HELD, [0.1, 0.1, 0.1], [0.5, 0.5, 0.5], None).verdict == "more"
    assert judge(HELD, [0.5, 0.5, 0.5], [0.1, 0.1, 0.1], None).verdict == "less"


def test_a_change_of_five_percent_is_none_however_quiet_the_runs_are() -> None:
    assert judge(WAITED, [1.0] * 5, [1.04] * 5, None).verdict == "within noise"
    assert judge(WAITED, [1.0] * 5, [1.06] * 5, None).verdict == "worse"
    assert judge(WAITED, [0.0] * 5, [0.001] * 5, None).verdict == "within noise"


@pytest.mark.parametrize("runs", [2, 3, 5, 8])
def test_two_equal_sides_differ_in_one_of_a_hundred_comparisons_at_most(runs: int) -> None:
    chance = random.Random(20)
    told = 0
    for _ in range(4_000):
        before, after = ([chance.gauss(1.0, 0.2) for _ in range(runs)] for _ in range(2))
        told += judge(WAITED, before, after, None).changed
    assert told <= 60


@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_two_modes_of_a_program_are_no_change(runs: int) -> None:
    chance = random.Random(21)

    def side() -> list[float]:
        return [chance.choice([1.0, 1.5]) + chance.gauss(0, 0.03) for _ in range(runs)]

    told = sum(judge(WAITED, side(), side(), None).changed for _ in range(4_000))
    assert told <= 80


@pytest.mark.parametrize(
    ("runs", "times", "verdict"),
    [(2, 2.4, "unknown"), (2, 2.6, "worse"), (3, 1.5, "unknown"), (3, 1.7, "worse")],
)
def test_of_few_runs_only_a_large_change_is_told(runs: int, times: float, verdict: str) -> None:
    assert judge(WAITED, [1.0] * runs, [times] * runs, None).verdict == verdict
    assert judge(WAITED, [1.0] * 4, [1.0 * times] * 4, None).verdict == "worse"


def test_one_run_a_side_shows_no_mode_either() -> None:
    def verdict(times: float) -> str:
        parts = [1.0, 1.01, 1.02]
        return judge(WAITED, [1.0], [times], (parts, [times * part for part in parts])).verdict

    assert [verdict(1.01), verdict(2.0), verdict(3.0)] == ["within noise", "unknown", "worse"]


def test_there_is_a_factor_for_each_number_of_runs_and_it_falls_with_it() -> None:
    for fewer in range(1, MOST_RUNS + 1):
        row = [FACTORS[fewer, more] for more in range(max(fewer, 2), MOST_RUNS + 1)]
        assert row == sorted(row, reverse=True)
