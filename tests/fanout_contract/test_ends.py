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
from fanout_contract.modes import Mode, Way

from ungil.fanout import Backoff, CutOff, Outcomes, Progress, Stopped


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


def test_what_was_cancelled_as_it_ran_was_cut_off_and_others_have_ended_by_themselves(
    mode: Mode,
) -> None:
    never = mode.event()
    mode.release(never)
    began: list[int] = []

    async def fn(number: int) -> int:
        began.append(number)
        if number == 0:
            while len(began) < 3:
                await mode.sleep(0.001)
            return number
        try:
            await never.wait()
        finally:
            if number == 1:
                raise SystemExit("while it cleaned up")
        return number

    seen: list[Progress] = []
    outcomes = mode.fanout(fn, range(3), limit=3, in_order=False, progress=seen.append)
    assert next(outcomes).value == 0
    outcomes.close()
    left, other = sorted(outcomes, key=lambda outcome: outcome.index)
    assert isinstance(left.exception, SystemExit)
    if not mode.cancels:
        assert other.value == 2
        return
    assert isinstance(other.exception, CutOff)
    assert isinstance(other.exception.__cause__, BaseException)
    assert seen[-1].failures == {"SystemExit": 1, "cut off": 1}


def test_the_end_of_the_input_does_not_wait_for_the_rate(way: Way) -> None:
    # Another start would be allowed in eleven days.
    async def fn(number: int) -> int:
        return number

    [outcome] = way.outcomes(fn, [7], rate=1e-6)
    assert outcome.value == 7


def test_what_waits_for_the_rate_does_not_run_when_all_is_stopped(mode: Mode) -> None:
    async def fn(number: int) -> int:
        return number

    outcomes = mode.fanout(fn, [1, 2, 3], rate=1e-6)
    assert next(outcomes).value == 1
    outcomes.stop()
    assert [(type(it.exception), it.attempts) for it in outcomes] == [(Stopped, 0)]
