"""Combinations of what tests vary: fewer than all of them, and all where that is asked for.

Most mistakes show with one value or with two together. So of three or more things that vary, each
two values of two of them are tested together at least once, and not each three. Before a release,
`EVERY_COMBINATION=1 make python-test` has them all (docs/releasing.md).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

VARIABLE = "EVERY_COMBINATION"


def pairwise(
    *values: Sequence[Any], without: Iterable[tuple[Any, ...]] = ()
) -> list[tuple[Any, ...]]:
    """Combinations of one of each of `values`, in the order of all; those `without` are none.

    Each two values that occur in one of all combinations occur in one of these.
    """
    left_out = set(without)
    every = [it for it in product(*values) if it not in left_out]
    if os.environ.get(VARIABLE):
        return every
    chosen: list[tuple[Any, ...]] = []
    missing = {pair for it in every for pair in _pairs(it)}
    # What has most that is missing comes first; of the same number the first, so that it is the
    # same choice in every process.
    for wanted in range(len(values) * (len(values) - 1) // 2, 0, -1):
        for it in every:
            if len(missing.intersection(_pairs(it))) >= wanted:
                chosen.append(it)
                missing.difference_update(_pairs(it))
    return sorted(chosen, key=every.index)


def _pairs(combination: tuple[Hashable, ...]) -> list[tuple[object, ...]]:
    return list(combinations(enumerate(combination), 2))
