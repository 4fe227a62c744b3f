"""The ends of a fan-out before its time: who leaves it, and who stops it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from fanout_contract.items import Waiting, one_group
from fanout_contract.modes import Mode

from ungil.fanout import Backoff, Outcomes, Stopped


def leave(outcomes: Outcomes[Any, Any], how: str) -> None:
    """After the first outcome. Whoever calls must not hold the outcomes."""
    if how == "break":
        for outcome in outcomes:
            assert outcome.value == 0
            break
        return
    if how == "close":
        assert next(outcomes).value == 0
        outcomes.close()
        return
    with outcomes:
        assert next(outcomes).value == 0
        if how == "error":
            raise LookupError


@pytest.mark.parametrize("how", ["break", "close", "with", "error"])
def test_leaving_early_ends_what_runs_or_waits_for_it_and_starts_nothing_more(
    mode: Mode, how: str
) -> None:
    waiting = Waiting(mode)
    mode.release(waiting.released)
    with suppress(LookupError):
        leave(mode.fanout(waiting.fn, itertools.count(), limit=5), how)
    waiting.check()


def test_leaving_starts_nothing_of_what_waits_for_its_group(mode: Mode) -> None:
    waiting = Waiting(mode)
    mode.release(waiting.released)
    outcomes = mode.fanout(waiting.fn, range(100), limit=5, group=one_group, per_group=2)
    leave(outcomes, "close")
    waiting.check(last=2)


def test_what_was_closed_gives_only_what_has_ended(mode: Mode) -> None:
    waiting = Waiting(mode)
    mode.release(waiting.released)
    outcomes = mode.fanout(waiting.fn, range(3))
    leave(outcomes, "close")
    values = [outcome.value for outcome in outcomes if outcome.ok]
    assert values == ([] if mode.cancels else [1, 2])


def test_what_runs_when_all_is_stopped_ends_and_nothing_else_starts(mode: Mode) -> None:
    began: list[int] = []

    async def fn(item: int) -> int:
        began.append(item)
        if item == 4:
            outcomes.stop()
        return item

    outcomes = mode.fanout(fn, range(1000), limit=1)
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, 3, 4]
    assert began == [0, 1, 2, 3, 4]


@pytest.fixture
def handled() -> Generator[list[Outcomes[Any, Any]]]:
    """What SIGUSR1 stops. It is taken out when that has happened."""
    stops: list[Outcomes[Any, Any]] = []

    def stop(_number: int, _frame: object) -> None:
        stops[0].stop()
        stops.clear()

    before = signal.signal(signal.SIGUSR1, stop)
    yield stops
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("limit", [1, "auto"])
def test_what_waits_to_be_tried_again_comes_at_once_when_all_is_stopped(
    mode: Mode, limit: Any, handled: list[Outcomes[Any, Any]]
) -> None:
    async def fn(item: int) -> None:
        if item == 1:
            # The other has failed, and waits to be tried again.
            while outcomes.running > 1:
                await mode.sleep(0.001)
            os.kill(os.getpid(), signal.SIGUSR1)
            while handled:
                await mode.sleep(0.001)
        raise ConnectionError(item)

    options: dict[str, Any] = {"retries": 1, "backoff": Backoff(1e6, most=1e6)}
    outcomes = mode.fanout(fn, [0, 1], limit=limit, **options)
    handled.append(outcomes)
    first, second = outcomes
    assert isinstance(first.exception, Stopped)
    # It has failed after the stop, and is not tried again.
    assert isinstance(second.exception, ConnectionError)


def test_a_fan_out_can_be_stopped_before_it_began(mode: Mode) -> None:
    outcomes = mode.fanout(mode.itself, range(10))
    outcomes.stop()
    assert list(outcomes) == []
