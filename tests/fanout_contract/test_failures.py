"""Failures of single items: exceptions, timeouts, other attempts."""

from __future__ import annotations

import time
import traceback
from typing import Any

import pytest
from fanout_contract.items import Flaky
from fanout_contract.modes import Mode, Way

from ungil.fanout import Backoff, Outcome, Progress

# An item that does not wait is done long before, on the busiest machine.
TIMEOUT_S = 0.9


def test_an_exception_is_kept_with_its_traceback(way: Way) -> None:
    async def innermost(number: int) -> float:
        return 1 / number

    async def fn(number: int) -> float:
        await way.mode.sleep(0)
        return await innermost(number)

    outcomes = way.outcomes(fn, [1, 0, 2])
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    failed = outcomes[1]
    assert (failed.item, failed.value, failed.attempts) == (0, None, 1)
    assert failed.exception is not None
    names = [frame.name for frame in traceback.extract_tb(failed.exception.__traceback__)]
    assert names[-2:] == ["fn", "innermost"]
    with pytest.raises(ZeroDivisionError):
        failed.unwrap()


# Timeouts.


def check_that_its_time_was_over(mode: Mode, outcome: Outcome[object, object]) -> None:
    assert isinstance(outcome.exception, TimeoutError)
    goes_on = "" if mode.cancels else "; its thread goes on"
    assert str(outcome.exception) == f"not done within {TIMEOUT_S} s{goes_on}"
    assert outcome.abandoned is not mode.cancels
    assert outcome.seconds >= TIMEOUT_S - mode.early_s
    assert outcome.value is None


def test_an_item_whose_time_is_over_has_failed_and_the_others_go_on(way: Way) -> None:
    mode = way.mode
    never = mode.event()
    cleaned_up: list[int] = []

    async def fn(number: int) -> int:
        try:
            if number % 2:
                await never.wait()
        finally:
            await mode.sleep(0.001)
            cleaned_up.append(number)
        return number

    outcomes = way.outcomes(fn, range(6), limit=2, timeout=TIMEOUT_S)
    assert [outcome.value for outcome in outcomes] == [0, None, 2, None, 4, None]
    for outcome in outcomes[1::2]:
        check_that_its_time_was_over(mode, outcome)
    assert sorted(cleaned_up) == ([0, 1, 2, 3, 4, 5] if mode.cancels else [0, 2, 4])


def test_time_runs_for_each_attempt_also_for_those_that_begin_late(way: Way) -> None:
    mode = way.mode
    never = mode.event()

    async def fn(number: int) -> None:
        await (mode.sleep(0.6 * TIMEOUT_S) if number else never.wait())

    outcomes = way.outcomes(fn, range(3), limit=1, timeout=TIMEOUT_S)
    assert [outcome.ok for outcome in outcomes] == [False, True, True]
    check_that_its_time_was_over(mode, outcomes[0])


def test_an_item_is_tried_again_when_its_time_was_over(way: Way) -> None:
    never = way.mode.event()
    attempts: list[float] = []

    async def fn(_: int) -> int:
        attempts.append(time.monotonic())
        if len(attempts) < 3:
            await never.wait()
        return len(attempts)

    [outcome] = way.outcomes(fn, [0], timeout=0.5, retries=2, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == (3, 3, False)


def test_an_attempt_is_not_ended_by_the_time_out_of_the_one_before(way: Way) -> None:
    # Both begin at once. The first fails at once, and its next attempt sees the timeout of the
    # second, which is when the time of its own first attempt would have been over.
    hung_was_given_up, never = way.mode.event(), way.mode.event()
    tries: list[str] = []

    def is_worth_another(error: Exception) -> bool:
        if isinstance(error, TimeoutError):
            hung_was_given_up.set()
        return isinstance(error, ConnectionError)

    async def work(item: str) -> str:
        tries.append(item)
        if item == "hangs":
            await never.wait()
        if tries.count(item) == 1:
            raise ConnectionError(item)
        await hung_was_given_up.wait()
        return "second"

    again, hung = way.outcomes(
        work,
        ["again", "hangs"],
        timeout=TIMEOUT_S,
        retries=1,
        retry_if=is_worth_another,
        backoff=Backoff(0.8 * TIMEOUT_S, jitter=0),
    )
    assert (again.value, again.attempts) == ("second", 2)
    check_that_its_time_was_over(way.mode, hung)


def test_who_is_in_time_is_not_disturbed_by_time_outs(way: Way) -> None:
    async def fn(number: int) -> int:
        await way.mode.sleep(0.0001)
        return number

    outcomes = way.outcomes(fn, range(1000), timeout=60)
    assert [outcome.unwrap() for outcome in outcomes] == list(range(1000))


# Other attempts.


def test_what_failed_is_tried_again_as_often_as_said(way: Way) -> None:
    items = list(enumerate([0, 1, 2, 3, 0]))
    outcomes = way.outcomes(Flaky(way.mode).attempt, items, retries=2, backoff=Backoff(0))
    assert [outcome.attempts for outcome in outcomes] == [1, 2, 3, 3, 1]
    assert [outcome.value for outcome in outcomes] == [1, 2, 3, None, 1]
    assert str(outcomes[3].exception) == "failure 3"


def test_only_what_the_predicate_wants_is_tried_again(way: Way) -> None:
    asked: list[str] = []

    def first_failure(error: Exception) -> bool:
        asked.append(str(error))
        return str(error) == "failure 1"

    fn = Flaky(way.mode).attempt
    [outcome] = way.outcomes(fn, [(0, 9)], retries=5, retry_if=first_failure, backoff=Backoff(0))
    assert (outcome.attempts, str(outcome.exception)) == (2, "failure 2")
    assert asked == ["failure 1", "failure 2"]


@pytest.mark.parametrize("option", ["retry_if", "group"])
def test_an_error_of_the_callers_own_functions_is_raised(way: Way, option: str) -> None:
    def broken(_: object) -> bool:
        raise LookupError("no such thing")

    options: dict[str, object] = {"retry_if": broken, "retries": 1}
    if option == "group":
        options = {"group": broken, "per_group": 1}
    with pytest.raises(LookupError, match="no such thing"):
        way.outcomes(Flaky(way.mode).attempt, [(0, 1), (1, 1)], limit=1, **options)


def test_the_wait_before_another_attempt_grows(way: Way) -> None:
    started: list[float] = []

    async def fn(_: int) -> None:
        started.append(time.monotonic())
        raise ConnectionError

    backoff = Backoff(0.02, factor=3, jitter=0)
    [outcome] = way.outcomes(fn, [0], retries=2, backoff=backoff)
    first, second, third = started
    assert second - first >= 0.02
    assert third - second >= 0.06
    assert outcome.attempts == 3
    assert outcome.started - outcome.queued >= 0.079


def test_others_go_on_while_an_item_waits_for_another_attempt(way: Way) -> None:
    calls: list[int] = []

    async def fn(number: int) -> int:
        calls.append(number)
        if number == 0 and calls.count(0) == 1:
            raise ConnectionError
        return len(calls)

    backoff = Backoff(1, jitter=0)
    outcomes = way.outcomes(fn, range(20), limit=1, retries=1, backoff=backoff)
    # The first was the last to be called.
    assert outcomes[0].value == 21


class NotEvenAnError(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, NotEvenAnError])
def test_what_is_no_exception_is_a_failure_as_all_others(
    way: Way, kind: type[BaseException]
) -> None:
    calls: list[int] = []
    asked: list[BaseException] = []

    async def fn(number: int) -> int:
        calls.append(number)
        if calls.count(1) == 1 or number == 2:
            raise kind(f"of {number}")
        return number

    def is_asked(error: BaseException) -> bool:
        asked.append(error)
        return True

    seen: list[Progress] = []
    options: dict[str, Any] = {"retry_if": is_asked, "progress": seen.append}
    outcomes = way.outcomes(fn, [1, 2, 3], limit=1, retries=1, backoff=Backoff(0), **options)
    assert [outcome.value for outcome in outcomes] == [1, None, 3]
    assert [outcome.attempts for outcome in outcomes] == [2, 2, 1]
    error = outcomes[1].exception
    assert type(error) is kind
    assert str(error) == "of 2"
    assert [str(error) for error in asked] == ["of 1", "of 2"]
    assert seen[-1].failures == {kind.__name__: 1}


def test_failures_are_raised_as_one_group_of_python_s_kinds(mode: Mode) -> None:
    async def fn(number: int) -> None:
        raise SystemExit(number) if number == 2 else ValueError(number)

    with pytest.raises(ExceptionGroup):
        mode.fanout(fn, [0, 1]).raise_for_failures()
    with pytest.raises(BaseExceptionGroup) as raised:
        mode.fanout(fn, [0, 1, 2]).raise_for_failures()
    assert not isinstance(raised.value, Exception)
    assert [type(error) for error in raised.value.exceptions] == [ValueError] * 2 + [SystemExit]
