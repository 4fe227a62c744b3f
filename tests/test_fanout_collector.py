"""How often the collector of cycles looks while a fan-out runs, and afterwards."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from ungil.fanout import Fanout, fanout, sleep

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


async def threshold(_item: object) -> int:
    await sleep(0)
    return gc.get_threshold()[0]


@pytest.mark.parametrize("mode", ["lean", "asyncio"])
def test_it_waits_for_more_objects_while_very_many_items_run(mode: Any) -> None:
    seen = {o.unwrap() for o in fanout(threshold, range(5000), limit=5000, mode=mode)}
    assert min(seen) >= 100_000
    assert gc.get_threshold() == USUAL


def test_a_few_items_do_not_matter_to_it() -> None:
    assert {o.unwrap() for o in fanout(threshold, range(100), limit=10)} == {700}


def test_a_program_that_has_switched_it_off_is_left_alone() -> None:
    gc.set_threshold(0, 10, 10)
    assert {o.unwrap() for o in fanout(threshold, range(5000), limit=5000)} == {0}
    assert gc.get_threshold() == (0, 10, 10)


def test_a_higher_threshold_of_the_program_is_left_alone() -> None:
    gc.set_threshold(50_000_000, 10, 10)
    assert {o.unwrap() for o in fanout(threshold, range(5000), limit=5000)} == {50_000_000}
    assert gc.get_threshold()[0] == 50_000_000


def test_what_the_program_sets_meanwhile_is_what_is_put_back() -> None:
    outcomes = fanout(threshold, range(5000), limit=2000)
    next(outcomes)
    gc.set_threshold(1234, 10, 10)
    list(outcomes)
    assert gc.get_threshold()[0] == 1234


def test_two_fan_outs_are_added_and_the_last_one_puts_it_back() -> None:
    one, two = (fanout(threshold, range(5000), limit=2000) for _ in range(2))
    next(one)
    alone = gc.get_threshold()[0]
    next(two)
    assert gc.get_threshold()[0] > alone > USUAL[0]
    list(two)
    assert gc.get_threshold()[0] == alone
    list(one)
    assert gc.get_threshold() == USUAL


def test_a_fan_out_that_fails_puts_it_back() -> None:
    def items() -> Iterator[int]:
        yield from range(5000)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(fanout(threshold, items(), limit=2000))
    assert gc.get_threshold() == USUAL


def test_a_stream_of_a_program_with_a_loop_puts_it_back() -> None:
    async def program() -> set[int]:
        async with Fanout(limit=5000) as f:
            seen = {o.unwrap() async for o in f.stream(threshold, range(5000))}
        assert gc.get_threshold() == USUAL
        return seen

    assert min(asyncio.run(program())) >= 100_000


def test_a_fan_out_that_is_left_puts_it_back() -> None:
    for _outcome in fanout(threshold, range(5000), limit=2000):
        break
    gc.collect()
    assert gc.get_threshold() == USUAL
