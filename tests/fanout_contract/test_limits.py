"""How many run at once, and how many start in a second."""

from __future__ import annotations

from typing import Any

import pytest
from fanout_contract.items import Crowd, one_group
from fanout_contract.modes import Mode, Way

from ungil.fanout import Backoff

# The moment in which a rate could be forgotten is short, so it is asked for many times.
TIMES = 60
# A few start at once, the others one to three milliseconds apart: what timers count in.
RATE = 400.0


@pytest.mark.parametrize("limit", [1, 7])
def test_never_more_than_the_limit_run_at_once(way: Way, limit: int) -> None:
    crowd = Crowd(way.mode, together=limit)
    assert len(way.outcomes(crowd.visit, ["somebody"] * 100, limit=limit)) == 100
    assert crowd.most["all"] == limit


@pytest.mark.parametrize("form", ["number", "mapping"])
def test_never_more_of_a_group_run_at_once_than_its_own_limit(way: Way, form: str) -> None:
    items = [f"site {number % 4}" for number in range(200)]
    per_group: Any = 3 if form == "number" else dict.fromkeys(items, 3)
    crowd = Crowd(way.mode, together=12)
    outcomes = way.outcomes(crowd.visit, items, limit=50, group=str, per_group=per_group)
    assert [outcome.item for outcome in outcomes if outcome.ok] == items
    assert {crowd.most[item] for item in items} == {3}
    assert crowd.most["all"] == 12


def test_groups_differ_in_their_limits_and_may_have_none(way: Way) -> None:
    crowd = Crowd(way.mode, together=46)
    items = ["narrow", "wide", "free", None] * 20
    limits = {"narrow": 1, "wide": 5}

    def kind(item: str | None) -> str | None:
        return item

    outcomes = way.outcomes(crowd.visit, items, limit=100, group=kind, per_group=limits)
    assert all(outcome.ok for outcome in outcomes)
    assert [crowd.most[item] for item in items[:4]] == [1, 5, 20, 20]


def test_a_crowded_group_does_not_keep_the_others_from_running(way: Way) -> None:
    release = way.mode.event()

    async def fn(group: str) -> None:
        if group == "other":
            release.set()
        await release.wait()

    # If those of the first group took slots, or the input stopped at them, this would hang.
    items = ["crowded"] * 500 + ["other"]
    outcomes = way.outcomes(fn, items, limit=10, group=str, per_group={"crowded": 1})
    assert [outcome.ok for outcome in outcomes] == [True] * 501


def test_a_retry_of_a_group_counts_as_one_of_it(way: Way) -> None:
    crowd = Crowd(way.mode, together=2)
    calls: dict[int, int] = {}

    async def fn(number: int) -> None:
        await crowd.visit("group")
        calls[number] = calls.get(number, 0) + 1
        if calls[number] < 3:
            raise ConnectionError

    options: dict[str, Any] = {"limit": 20, "group": one_group, "per_group": 2}
    outcomes = way.outcomes(fn, range(50), retries=2, backoff=Backoff(0), **options)
    assert [outcome.attempts for outcome in outcomes] == [3] * 50
    assert crowd.most["group"] == 2


def test_starts_are_no_more_frequent_than_the_rate(way: Way) -> None:
    started = sorted(
        outcome.started for outcome in way.outcomes(way.mode.itself, range(11), rate=100)
    )
    # One may go at once, the others a hundredth of a second after each other.
    assert started[-1] - started[0] >= 0.1 - 0.011


def test_a_fan_out_with_a_rate_comes_to_its_end(mode: Mode) -> None:
    for _ in range(TIMES):
        outcomes = mode.fanout(mode.itself, range(9), rate=RATE)
        assert [outcome.unwrap() for outcome in outcomes] == list(range(9))


def test_it_finds_its_limit_by_itself(way: Way) -> None:
    async def fn(number: int) -> int:
        await way.mode.sleep(0.002)
        return number

    outcomes = way.outcomes(fn, range(2000), limit="auto")
    assert [outcome.unwrap() for outcome in outcomes] == list(range(2000))
