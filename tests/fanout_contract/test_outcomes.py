"""Outcomes: one for each item, in order, and not before somebody wants them."""

from __future__ import annotations

import contextvars
import itertools
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest
from fanout_contract.modes import THREADS, Mode, Way

from ungil.fanout import Outcome, Outcomes, raise_for_failures
from ungil.fanout._call import MOST_FAILURES

# How many finished outcomes wait at most for one before them, or for whoever takes them.
WINDOW = 10_000
# A number of the size of 1.7e9, as seconds since 1970 are, is no finer.
ROUNDING_S = 1e-6


def values(outcomes: Iterable[Outcome[Any, Any]]) -> list[Any]:
    return [outcome.unwrap() for outcome in outcomes]


# Order.


def test_outcomes_are_in_the_order_of_the_items_whatever_ends_first(mode: Mode) -> None:
    events = [mode.event() for _ in range(10)]
    events[-1].set()
    ended: list[int] = []

    async def backwards(number: int) -> int:
        await events[number].wait()
        ended.append(number)
        if number > 0:
            events[number - 1].set()
        return number * 10

    outcomes = mode.fanout(backwards, range(10))
    assert outcomes.mode == mode.mode
    assert [(one.item, one.index, one.value, one.ok, one.attempts) for one in outcomes] == [
        (number, number, number * 10, True, 1) for number in range(10)
    ]
    assert ended == list(reversed(range(10)))


def test_outcomes_come_while_others_still_run(mode: Mode) -> None:
    may_end = [mode.event() for _ in range(5)]
    may_end[0].set()

    async def fn(number: int) -> int:
        await may_end[number].wait()
        return number

    came: list[int] = []
    for outcome in mode.fanout(fn, range(4), limit=4):
        came.append(outcome.unwrap())
        may_end[len(came)].set()
    assert came == [0, 1, 2, 3]


def test_outcomes_come_as_they_finish_if_they_need_not_be_in_order(mode: Mode) -> None:
    last = mode.event()

    async def meet(number: int) -> None:
        # The first ends when the outcomes of the others were taken.
        if number == 0:
            await last.wait()

    outcomes = mode.fanout(meet, range(4), in_order=False)
    assert {next(outcomes).index for _ in range(3)} == {1, 2, 3}
    last.set()
    assert [outcome.index for outcome in outcomes] == [0]


def test_outcomes_cannot_be_gone_through_twice(mode: Mode) -> None:
    outcomes = mode.fanout(mode.itself, [1, 2])
    assert len(list(outcomes)) == 2
    with pytest.raises(
        RuntimeError, match=r"^all 2 outcomes of this fan-out have already been taken: "
    ):
        list(outcomes)


def test_times_are_seconds_since_1970_and_in_order(mode: Mode) -> None:
    async def fn(seconds: float) -> float:
        """How long it has slept, by the clock that never goes back."""
        begun = time.monotonic()
        await mode.sleep(seconds)
        return time.monotonic() - begun

    before = time.time() - ROUNDING_S
    outcomes = list(mode.fanout(fn, [0.01, 0.02, 0.03], limit=1))
    after = time.time() + ROUNDING_S
    for outcome in outcomes:
        assert before <= outcome.queued <= outcome.started <= outcome.finished <= after
        assert outcome.seconds >= outcome.unwrap()
        assert outcome.finished - outcome.started == pytest.approx(outcome.seconds, abs=ROUNDING_S)
        assert outcome.attempts == 1
    for outcome, following in itertools.pairwise(outcomes):
        assert outcome.finished <= following.started + ROUNDING_S


# The input.


def test_items_are_not_taken_before_somebody_iterates(mode: Mode) -> None:
    taken: list[int] = []
    outcomes = mode.fanout(mode.itself, (taken.append(number) for number in range(3)))
    assert taken == []
    assert len(list(outcomes)) == 3
    assert taken == [0, 1, 2]


def test_no_more_items_are_taken_than_the_window_and_the_limit_allow(mode: Mode) -> None:
    limit = 7
    # In threads, as many as run are read ahead, and one is in the hand of who reads.
    ahead = 2 * limit + 1 if mode is THREADS else limit
    window_is_full = mode.event()
    last = at_most = 0

    def items() -> Generator[int]:
        nonlocal last
        for last in itertools.count():
            if last == WINDOW:
                # The others have gone on without the first.
                window_is_full.set()
            yield last

    async def fn(number: int) -> int:
        nonlocal at_most
        if number == 0:
            await window_is_full.wait()
            # The others may go on, as far as they can.
            for _ in range(100):
                await mode.sleep(0)
            at_most = last
        return number

    with mode.fanout(fn, items(), limit=limit) as outcomes:
        assert next(outcomes).value == 0
        assert WINDOW <= at_most <= WINDOW + ahead
        assert values(itertools.islice(outcomes, 100)) == list(range(1, 101))
    assert last <= WINDOW + ahead + 101


def test_an_endless_input_needs_no_more_memory_than_a_window_of_it(mode: Mode) -> None:
    limit = 10

    class Counted:
        alive = most = 0

        def __init__(self) -> None:
            Counted.alive += 1
            Counted.most = max(Counted.most, Counted.alive)

        def __del__(self) -> None:
            Counted.alive -= 1

    async def fn(item: Any) -> bool:
        await mode.sleep(0)
        return isinstance(item, Counted)

    items = (Counted() for _ in range(3 * WINDOW))
    assert sum(outcome.unwrap() for outcome in mode.fanout(fn, items, limit=limit)) == 3 * WINDOW
    assert Counted.most <= WINDOW + 2 * limit
    mode.settle()
    assert Counted.alive == 0


def test_the_input_is_asked_by_one_at_a_time(mode: Mode) -> None:
    lock = threading.Lock()

    class Items:
        given = 0

        def __iter__(self) -> Items:
            return self

        def __next__(self) -> int:
            assert lock.acquire(blocking=False), "somebody else is asking"
            time.sleep(0.001)
            self.given += 1
            lock.release()
            if self.given > 30:
                raise StopIteration
            return self.given

    async def fn(number: int) -> int:
        await mode.sleep(0.002)
        return number

    assert values(mode.fanout(fn, Items(), limit=5)) == list(range(1, 31))


def test_what_the_input_raises_comes_after_the_outcomes_before_it(mode: Mode) -> None:
    def items() -> Generator[int]:
        yield from range(3)
        raise OSError("the list of hosts broke off")

    seen: list[int] = []
    with pytest.raises(OSError, match="the list of hosts broke off"):  # noqa: PT012
        for outcome in mode.fanout(mode.itself, items()):
            seen.append(outcome.unwrap())
    assert seen == [0, 1, 2]


def test_no_items_give_no_outcomes(way: Way) -> None:
    assert way.outcomes(way.mode.itself, []) == []


def test_items_need_not_be_hashable_nor_distinct(way: Way) -> None:
    items: list[Any] = [{}, [], {}, [[]], None, None]
    outcomes = way.outcomes(way.mode.itself, items)
    assert [outcome.item for outcome in outcomes] == items
    assert all(outcome.value is item for outcome, item in zip(outcomes, items, strict=True))


# Failures of many.


async def inverted(number: int) -> float:
    return 1 / number


def test_all_failures_can_be_raised_as_a_group(mode: Mode) -> None:
    async def fn(number: int) -> float:
        return 1 / (number % 3)

    with pytest.raises(ExceptionGroup, match="4 of 10 items failed") as caught:
        mode.fanout(fn, range(10)).raise_for_failures()
    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError] * 4
    assert mode.fanout(fn, [1, 2]).raise_for_failures() == [1, 0.5]


def test_failures_are_raised_whoever_has_taken_them(mode: Mode) -> None:
    ways: list[Callable[[Outcomes[Any, Any]], object]]
    ways = [Outcomes.raise_for_failures, raise_for_failures]
    for taken, raises in itertools.product([0, 2, 4], ways):
        outcomes = mode.fanout(inverted, [1, 0, 2, 0])
        assert len(list(itertools.islice(outcomes, taken))) == taken
        for _ in range(2):
            with pytest.raises(ExceptionGroup, match="2 of 4 items failed") as caught:
                raises(outcomes)
            assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError] * 2


def test_values_are_those_that_nobody_has_taken(mode: Mode) -> None:
    outcomes = mode.fanout(inverted, [1, 2, 4])
    assert next(outcomes).value == 1
    assert outcomes.raise_for_failures() == [0.5, 0.25]
    assert outcomes.raise_for_failures() == []


def test_of_many_failures_the_first_are_kept_and_all_are_counted(mode: Mode) -> None:
    number = MOST_FAILURES + 1
    with pytest.raises(ExceptionGroup, match=f"{number} of {number} items failed; .* first 10000"):
        mode.fanout(inverted, itertools.repeat(0, number)).raise_for_failures()


# The context.


def test_functions_see_the_context_of_the_caller(way: Way) -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    async def fn(_: int) -> str:
        await way.mode.sleep(0)
        return variable.get()

    variable.set("the caller's")
    assert values(way.outcomes(fn, range(2))) == ["the caller's"] * 2


def test_functions_do_not_see_what_others_set_in_their_context(isolating: Way) -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    async def fn(item: int) -> tuple[str, str]:
        before = variable.get()
        variable.set(f"item {item}")
        await isolating.mode.sleep(0)
        return before, variable.get()

    variable.set("the caller's")
    for limit in (1, 2):
        outcomes = isolating.outcomes(fn, range(6), limit=limit)
        assert values(outcomes) == [("the caller's", f"item {item}") for item in range(6)]
    assert variable.get() == "the caller's"


def test_none_is_no_input(way: Way) -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="items=None cannot be iterated over: give a list of items"):
        way.outcomes(way.mode.itself, nothing)
