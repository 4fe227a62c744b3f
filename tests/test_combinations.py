"""Of what varies, each two values come together, in few combinations."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from combinations import VARIABLE, pairwise

AXES = (("3.8", "3.11", "3.13"), ("fair", "batch"), ("fork", "exec", "exit", "thread"))


def pairs_of(chosen: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {pair for it in chosen for pair in combinations(it, 2)}


def test_each_two_values_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    every = list(product(*AXES))
    chosen = pairwise(*AXES)
    assert pairs_of(chosen) == pairs_of(every)
    # No fewer can be enough: each of the first and each of the last come together.
    assert 12 <= len(chosen) <= 14
    assert chosen == sorted(set(chosen), key=every.index)


def test_what_is_left_out_is_not_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    left_out = [("3.8", policy, "exit") for policy in AXES[1]]
    chosen = pairwise(*AXES, without=left_out)
    assert not set(left_out) & set(chosen)
    assert pairs_of(chosen) == pairs_of([it for it in product(*AXES) if it not in left_out])


def test_all_of_them_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert pairwise(*AXES) == list(product(*AXES))
