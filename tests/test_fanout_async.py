"""What a fan-out of coroutines promises, on asyncio's own loop and on uvloop's."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import aclosing
from typing import Any
from unittest.mock import AsyncMock

import pytest
import uvloop  # pyright: ignore[reportMissingTypeStubs]

from ungil.fanout import Backoff, Fanout, Outcome, Outcomes, fanout, raise_for_failures
from ungil.fanout._call import MOST_FAILURES

# How many finished outcomes wait at most for one before them, or for whoever takes them.
WINDOW = 10_000
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs on each of the loops."""
    name: str = request.param
    if name == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    return name


@pytest.fixture
def run(loop: str) -> Run:
    """Runs a coroutine, as a program with a loop of its own does; nothing may be left behind."""

    async def checked(coroutine: Coroutine[Any, Any, Any]) -> Any:
        result = await coroutine
        await nothing_runs()
        return result

    def runs(coroutine: Coroutine[Any, Any, Any]) -> Any:
        factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(checked(coroutine))

    return runs


async def itself(item: Any) -> Any:
    """Comes back with its item, and not at once."""
    await asyncio.sleep(0)
    return item


async def nothing_runs() -> None:
    """Fails if there is another task than this one; generators are closed in a turn of the loop."""
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def streamed(fn: Callable[[Any], Any], items: Any, **options: Any) -> list[Outcome]:
    """The outcomes of a stream, as they came."""
    async with Fanout(**options) as f:
        return [outcome async for outcome in f.stream(fn, items)]


class Crowd:
    """Counts who is inside at once, by group."""

    def __init__(self) -> None:
        self.inside: Counter[Any] = Counter()
        self.most: Counter[Any] = Counter()

    async def visit(self, group: Any) -> None:
        """Inside for some turns of the loop."""
        self.inside[group] += 1
        self.inside["all"] += 1
        self.most |= self.inside
        for _ in range(5):
            await asyncio.sleep(0)
        self.inside[group] -= 1
        self.inside["all"] -= 1


class Backwards:
    """A function that ends for the last item first."""

    def __init__(self, number: int) -> None:
        self.ended: list[int] = []
        self.events = [asyncio.Event() for _ in range(number)]
        self.events[-1].set()

    async def __call__(self, number: int) -> int:
        await self.events[number].wait()
        self.ended.append(number)
        if number > 0:
            self.events[number - 1].set()
        return number


# Order, laziness, memory.


def test_outcomes_are_in_the_order_of_the_items_whatever_ends_first() -> None:
    backwards = Backwards(10)
    assert [outcome.value for outcome in fanout(backwards, range(10))] == list(range(10))
    assert backwards.ended == list(reversed(range(10)))


def test_a_stream_gives_outcomes_as_they_end(run: Run) -> None:
    outcomes = run(streamed(Backwards(10), range(10)))
    assert [(outcome.index, outcome.value) for outcome in outcomes] == [
        (number, number) for number in reversed(range(10))
    ]


def test_no_more_items_are_taken_than_the_window_and_the_limit_allow() -> None:
    taken = itertools.count()
    last = 0

    def items() -> Generator[int]:
        nonlocal last
        while True:
            last = next(taken)
            yield last

    async def fn(number: int) -> int:
        await asyncio.sleep(0)
        if number == 0:
            # Comes back when the others have not gone on for a hundred turns of the loop.
            seen, still = last, 0
            while still < 100:
                await asyncio.sleep(0)
                seen, still = last, still + 1 if last == seen else 0
        return number

    with fanout(fn, items(), limit=10) as outcomes:
        first = next(outcomes)
        assert first.value == 0
        assert WINDOW <= last <= WINDOW + 10
        for _ in range(100):
            next(outcomes)
        assert last <= WINDOW + 10 + 100


def test_a_million_items_would_need_no_more_memory_than_a_window_of_them() -> None:
    class Counted:
        alive = most = 0

        def __init__(self) -> None:
            Counted.alive += 1
            Counted.most = max(Counted.most, Counted.alive)

        def __del__(self) -> None:
            Counted.alive -= 1

    items = (Counted() for _ in range(3 * WINDOW))
    number = sum(1 for outcome in fanout(itself, items, limit=10) if outcome.ok)
    assert number == 3 * WINDOW
    assert Counted.most <= WINDOW + 20
    assert Counted.alive == 0


def test_items_are_not_taken_before_somebody_iterates() -> None:
    taken: list[int] = []
    outcomes = fanout(itself, (taken.append(number) for number in range(3)))
    assert taken == []
    assert len(list(outcomes)) == 3
    assert taken == [0, 1, 2]


def test_no_items_give_no_outcomes(run: Run) -> None:
    assert list(fanout(itself, [])) == []
    assert run(streamed(itself, [])) == []


def test_items_need_not_be_hashable_nor_distinct() -> None:
    items: list[Any] = [{}, [], {}, [[]], None, None]
    outcomes = list(fanout(itself, items))
    assert [outcome.item for outcome in outcomes] == items
    assert all(outcome.value is item for outcome, item in zip(outcomes, items, strict=True))


def test_what_the_input_raises_comes_after_the_outcomes_before_it(run: Run) -> None:
    def items() -> Generator[int]:
        yield from range(3)
        raise OSError("the list of hosts broke off")

    seen: list[int] = []
    with pytest.raises(OSError, match="broke off"):  # noqa: PT012
        for outcome in fanout(itself, items()):
            seen.append(outcome.value)
    assert seen == [0, 1, 2]

    async def stream() -> None:
        async with Fanout() as f:
            async for outcome in f.stream(itself, items()):
                seen.append(outcome.value)

    with pytest.raises(OSError, match="broke off"):
        run(stream())
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


# Asynchronous input.


def test_input_may_be_asynchronous_and_slow(run: Run) -> None:
    async def stream() -> list[int]:
        answered = asyncio.Event()
        seen: list[int] = []

        async def items() -> AsyncGenerator[int]:
            for number in range(5):
                yield number
                # An outcome comes although the next item does not.
                await answered.wait()
                answered.clear()

        async with Fanout(limit=2) as f:
            async for outcome in f.stream(itself, items()):
                seen.append(outcome.value)
                answered.set()
        return seen

    assert run(stream()) == list(range(5))


def test_asynchronous_input_is_taken_as_it_is_needed(run: Run) -> None:
    async def stream() -> int:
        last = 0

        async def items() -> AsyncGenerator[int]:
            nonlocal last
            for last in itertools.count():
                yield last

        async with Fanout(limit=10) as f, aclosing(f.stream(itself, items())) as outcomes:
            async for outcome in outcomes:
                if outcome.index == 3000:
                    break
        return last

    assert run(stream()) < 3000 + WINDOW


def test_what_asynchronous_input_raises_comes_after_the_outcomes_before_it(run: Run) -> None:
    async def stream() -> list[int]:
        seen: list[int] = []

        async def items() -> AsyncGenerator[int]:
            yield 1
            await asyncio.sleep(0)
            yield 2
            raise OSError("the inventory broke off")

        with pytest.raises(OSError, match="broke off"):  # noqa: PT012
            async with Fanout() as f:
                async for outcome in f.stream(itself, items()):
                    seen.append(outcome.value)
        return seen

    assert run(stream()) == [1, 2]


# Functions.


class Device:
    """What has something to call."""

    async def check(self, item: int) -> int:
        """A bound method."""
        return await itself(item)

    async def __call__(self, item: int) -> int:
        """The object itself."""
        return await itself(item)

    @classmethod
    async def of_class(cls, item: int) -> int:
        """A method of the class."""
        return await itself(item)

    @staticmethod
    async def of_nothing(item: int) -> int:
        """A function in the class."""
        return await itself(item)


async def second(_first: str, item: int) -> int:
    """For a partial."""
    return await itself(item)


@pytest.mark.parametrize(
    "fn",
    [
        Device().check,
        Device(),
        Device.of_class,
        Device.of_nothing,
        functools.partial(second, "first"),
        functools.partial(functools.partial(Device().check)),
        AsyncMock(side_effect=lambda item: item),  # pyright: ignore[reportUnknownLambdaType]
    ],
    ids=["bound", "object", "class", "static", "partial", "partials", "mock"],
)
def test_anything_that_gives_coroutines_can_be_called(fn: Callable[[Any], Awaitable[int]]) -> None:
    outcomes = fanout(fn, [1, 2])
    assert outcomes.mode == "asyncio"
    assert [outcome.value for outcome in outcomes] == [1, 2]


def test_functions_see_the_context_of_the_caller(run: Run) -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    async def fn(_: int) -> str:
        return variable.get()

    token = variable.set("the caller's")
    assert [outcome.value for outcome in fanout(fn, range(2))] == ["the caller's"] * 2
    variable.reset(token)

    async def stream() -> list[str]:
        variable.set("the stream's")
        return [outcome.unwrap() for outcome in await streamed(fn, range(2))]

    assert run(stream()) == ["the stream's"] * 2


# Failures.


def test_an_exception_is_kept_with_its_traceback(run: Run) -> None:
    async def innermost(number: int) -> float:
        return 1 / number

    async def fn(number: int) -> float:
        await asyncio.sleep(0)
        return await innermost(number)

    for outcomes in (list(fanout(fn, [1, 0, 2])), run(streamed(fn, [1, 0, 2]))):
        (failed,) = [outcome for outcome in outcomes if not outcome.ok]
        assert (failed.item, failed.value, failed.attempts) == (0, None, 1)
        names = [frame.name for frame in traceback.extract_tb(failed.exception.__traceback__)]
        assert names[-2:] == ["fn", "innermost"]
        with pytest.raises(ZeroDivisionError):
            failed.unwrap()


def test_all_failures_can_be_raised_as_a_group() -> None:
    async def fn(number: int) -> float:
        return 1 / (number % 3)

    with pytest.raises(ExceptionGroup, match="4 of 10 items failed") as caught:
        fanout(fn, range(10)).raise_for_failures()
    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError] * 4
    assert fanout(fn, [1, 2]).raise_for_failures() == [1, 0.5]


async def inverted(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize("taken", [0, 2, 4])
@pytest.mark.parametrize("raises", [Outcomes.raise_for_failures, raise_for_failures])
def test_failures_are_raised_whoever_has_taken_them(
    taken: int, raises: Callable[[Outcomes], object]
) -> None:
    outcomes = fanout(inverted, [1, 0, 2, 0])
    assert len(list(itertools.islice(outcomes, taken))) == taken
    for _ in range(2):
        with pytest.raises(ExceptionGroup, match="2 of 4 items failed") as caught:
            raises(outcomes)
        assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError] * 2


def test_values_are_those_that_nobody_has_taken() -> None:
    outcomes = fanout(inverted, [1, 2, 4])
    assert next(outcomes).value == 1
    assert outcomes.raise_for_failures() == [0.5, 0.25]
    assert outcomes.raise_for_failures() == []


def test_of_many_failures_the_first_are_kept_and_all_are_counted() -> None:
    number = MOST_FAILURES + 1
    with pytest.raises(ExceptionGroup, match=f"{number} of {number} items failed; .* first 10000"):
        fanout(inverted, itertools.repeat(0, number)).raise_for_failures()


def test_outcomes_come_as_they_finish_if_they_need_not_be_in_order() -> None:
    last = asyncio.Event()

    async def meet(number: int) -> None:
        # The first ends when the outcomes of the others were taken.
        if number == 0:
            await last.wait()

    outcomes = fanout(meet, range(4), in_order=False)
    assert {next(outcomes).index for _ in range(3)} == {1, 2, 3}
    last.set()
    assert [outcome.index for outcome in outcomes] == [0]


def test_outcomes_cannot_be_gone_through_twice() -> None:
    outcomes = fanout(inverted, [1, 2])
    assert len(list(outcomes)) == 2
    with pytest.raises(RuntimeError, match=r"^all 2 outcomes of this fan-out were taken before: "):
        list(outcomes)


def test_times_and_attempts_are_in_order() -> None:
    # Of the same moment, the one clock is finer than a number of the size of 1.7e9 can be.
    before = time.time() - 1e-6
    outcomes = list(fanout(itself, range(3)))
    after = time.time() + 1e-6
    for outcome in outcomes:
        assert before <= outcome.queued <= outcome.started <= outcome.finished <= after
        assert outcome.finished - outcome.started == pytest.approx(outcome.seconds, abs=1e-6)
        assert outcome.attempts == 1


# Time-outs.


def test_a_coroutine_whose_time_is_over_is_cancelled_and_cleans_up(run: Run) -> None:
    cleaned: list[int] = []

    async def fn(number: int) -> int:
        try:
            if number % 2:
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(number)
        return number

    for outcomes in (
        list(fanout(fn, range(6), timeout=0.05)),
        sorted(run(streamed(fn, range(6), timeout=0.05)), key=lambda outcome: outcome.index),
    ):
        assert [outcome.value for outcome in outcomes] == [0, None, 2, None, 4, None]
        for outcome in outcomes[1::2]:
            assert isinstance(outcome.exception, TimeoutError)
            assert "0.05 s" in str(outcome.exception)
            assert not outcome.abandoned
            # uvloop's timers are in whole milliseconds.
            assert outcome.seconds >= 0.045
    assert Counter(cleaned) == dict.fromkeys(range(6), 2)


def test_time_outs_of_the_function_itself_are_its_own() -> None:
    async def fn(own: float) -> str:
        try:
            async with asyncio.timeout(own):
                await asyncio.Event().wait()
        except TimeoutError:
            return "in time"
        return "never"

    first, second = fanout(fn, [0.01, 60], timeout=0.2)
    assert first.value == "in time"
    assert isinstance(second.exception, TimeoutError)


def test_a_coroutine_that_does_not_let_itself_be_cancelled_is_abandoned(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ungil.fanout._asyncio.GRACE_SECONDS", 0.02)

    async def fn(released: asyncio.Event) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    async def stream() -> list[Outcome]:
        released = asyncio.Event()
        seen: list[Outcome] = []
        async with Fanout(timeout=0.01) as f:
            async for outcome in f.stream(fn, [released]):
                seen.append(outcome)
        released.set()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        return seen

    (outcome,) = run(stream())
    assert isinstance(outcome.exception, TimeoutError)
    assert outcome.abandoned


def test_an_item_is_tried_again_when_its_time_was_over() -> None:
    async def fn(attempts: list[int]) -> int:
        attempts.append(1)
        if len(attempts) < 3:
            await asyncio.Event().wait()
        return len(attempts)

    (outcome,) = fanout(fn, [[]], timeout=0.02, retries=2, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts) == (3, 3)


# Retries.


class Flaky:
    """Fails so many times for each item, which is its number and that of its failures."""

    def __init__(self, error: type[Exception] = ConnectionError) -> None:
        self.calls: Counter[int] = Counter()
        self.error = error

    async def __call__(self, item: tuple[int, int]) -> int:
        number, failures = item
        self.calls[number] += 1
        await asyncio.sleep(0)
        if self.calls[number] <= failures:
            raise self.error(f"failure {self.calls[number]}")
        return self.calls[number]


def test_what_failed_is_tried_again_as_often_as_said(run: Run) -> None:
    items = list(enumerate([0, 1, 2, 3, 0]))
    for outcomes in (
        list(fanout(Flaky(), items, retries=2, backoff=Backoff(0))),
        sorted(run(streamed(Flaky(), items, retries=2, backoff=Backoff(0))), key=lambda o: o.index),
    ):
        assert [outcome.attempts for outcome in outcomes] == [1, 2, 3, 3, 1]
        assert [outcome.value for outcome in outcomes] == [1, 2, 3, None, 1]
        assert str(outcomes[3].exception) == "failure 3"


def test_only_what_the_predicate_wants_is_tried_again() -> None:
    asked: list[str] = []

    def first_failure(error: Exception) -> bool:
        asked.append(str(error))
        return str(error) == "failure 1"

    (outcome,) = fanout(Flaky(), [(0, 9)], retries=5, retry_if=first_failure, backoff=Backoff(0))
    assert (outcome.attempts, str(outcome.exception)) == (2, "failure 2")
    assert asked == ["failure 1", "failure 2"]


def test_an_error_of_the_predicate_ends_the_fan_out_and_names_itself() -> None:
    def broken(_: Exception) -> bool:
        raise LookupError("no such kind of failure")

    with pytest.raises(LookupError, match="no such kind"):
        list(fanout(Flaky(), [(0, 1)], retries=1, retry_if=broken))


def test_the_wait_before_another_attempt_grows() -> None:
    started: list[float] = []

    async def fn(_: int) -> None:
        started.append(time.monotonic())
        raise ConnectionError

    backoff = Backoff(0.02, factor=3, jitter=0)
    (outcome,) = fanout(fn, [0], retries=2, backoff=backoff)
    first, second, third = started
    assert second - first >= 0.02
    assert third - second >= 0.06
    assert outcome.attempts == 3


def test_others_go_on_while_an_item_waits_for_another_attempt() -> None:
    calls: Counter[int] = Counter()

    async def fn(number: int) -> int:
        calls[number] += 1
        if number == 0 and calls[0] == 1:
            raise ConnectionError
        return calls.total()

    outcomes = list(fanout(fn, range(100), limit=1, retries=1, backoff=Backoff(0.2, jitter=0)))
    # The first was the last to be called.
    assert outcomes[0].value == 101


# Limits.


@pytest.mark.parametrize("limit", [1, 7])
def test_never_more_than_the_limit_run_at_once(run: Run, limit: int) -> None:
    crowd = Crowd()
    assert len(list(fanout(crowd.visit, ["all groups"] * 100, limit=limit))) == 100
    assert crowd.most["all"] == limit
    crowd = Crowd()
    assert len(run(streamed(crowd.visit, ["all groups"] * 100, limit=limit))) == 100
    assert crowd.most["all"] == limit


def test_never_more_of_a_group_run_at_once_than_its_own_limit(run: Run) -> None:
    items = [f"site {number % 4}" for number in range(200)]
    for options in ({"per_group": 3}, {"per_group": dict.fromkeys(items, 3)}):
        crowd = Crowd()
        outcomes = list(fanout(crowd.visit, items, limit=50, group=str, **options))
        assert [outcome.item for outcome in outcomes] == items
        assert {crowd.most[item] for item in items} == {3}
        assert crowd.most["all"] == 12
    crowd = Crowd()
    run(streamed(crowd.visit, items, limit=50, group=str, per_group=3))
    assert {crowd.most[item] for item in items} == {3}


def test_groups_differ_in_their_limits_and_may_have_none() -> None:
    crowd = Crowd()
    items = ["narrow", "wide", "free", None] * 20
    outcomes = fanout(
        crowd.visit, items, limit=100, group=lambda item: item, per_group={"narrow": 1, "wide": 5}
    )
    assert all(outcome.ok for outcome in outcomes)
    assert [crowd.most[item] for item in items[:4]] == [1, 5, 20, 20]


def test_a_crowded_group_does_not_keep_the_others_from_running() -> None:
    entered: list[str] = []
    release = asyncio.Event()

    async def fn(group: str) -> None:
        entered.append(group)
        if group == "other":
            release.set()
        await release.wait()

    # If those of the first group took slots, or the input stopped at them, this would hang.
    items = ["crowded"] * 500 + ["other"]
    assert len(list(fanout(fn, items, limit=10, group=str, per_group={"crowded": 1}))) == 501


def test_a_retry_of_a_group_counts_as_one_of_it() -> None:
    crowd = Crowd()
    calls: Counter[int] = Counter()

    async def fn(number: int) -> None:
        await crowd.visit("group")
        calls[number] += 1
        if calls[number] < 3:
            raise ConnectionError

    outcomes = fanout(
        fn, range(50), limit=20, group=lambda _: 0, per_group=2, retries=2, backoff=Backoff(0)
    )
    assert [outcome.attempts for outcome in outcomes] == [3] * 50
    assert crowd.most["group"] == 2


def test_starts_are_no_more_frequent_than_the_rate(run: Run) -> None:
    started: list[float] = []

    async def fn(_: int) -> None:
        started.append(time.monotonic())

    list(fanout(fn, range(11), rate=100))
    # One may go at once, the others a hundredth of a second after each other.
    assert started[-1] - started[0] >= 0.1 - 0.011
    started.clear()
    run(streamed(fn, range(11), rate=100))
    assert started[-1] - started[0] >= 0.1 - 0.011


# Ends.


def test_leaving_the_block_cancels_what_runs_and_waits_for_it(run: Run) -> None:
    cleaned: list[int] = []

    async def fn(number: int) -> int:
        if number == 0:
            return number
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(number)
        return number

    async def stream() -> None:
        async with Fanout(limit=5) as f:
            async for outcome in f.stream(fn, itertools.count()):
                assert outcome.index == 0
                break
        assert sorted(cleaned) == [1, 2, 3, 4, 5]
        await nothing_runs()

    run(stream())


def test_closing_the_stream_cancels_what_runs_and_the_fanout_can_be_used_again(run: Run) -> None:
    async def fn(number: int) -> int:
        if number:
            await asyncio.Event().wait()
        return number

    async def stream() -> None:
        async with Fanout(limit=5) as f:
            for _ in range(2):
                async with aclosing(f.stream(fn, itertools.count())) as outcomes:
                    assert (await anext(outcomes)).value == 0
                await nothing_runs()

    run(stream())


def test_an_error_in_the_block_is_raised_after_everything_was_cancelled(run: Run) -> None:
    async def fn(number: int) -> int:
        if number:
            await asyncio.Event().wait()
        return number

    async def stream() -> None:
        async with Fanout(limit=5) as f:
            async for outcome in f.stream(fn, itertools.count()):
                raise LookupError(f"wrong value {outcome.value}")

    async def all_of_it() -> None:
        with pytest.raises(LookupError, match="wrong value 0"):
            await stream()
        await nothing_runs()

    run(all_of_it())


def test_cancelling_whoever_consumes_cancels_what_runs(run: Run) -> None:
    async def stream(running: asyncio.Event) -> None:
        async def fn(_: int) -> None:
            running.set()
            await asyncio.Event().wait()

        async with Fanout(limit=5) as f:
            async for _ in f.stream(fn, itertools.count()):
                pass

    async def all_of_it() -> None:
        running = asyncio.Event()
        consumer = asyncio.create_task(stream(running))
        await running.wait()
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        await nothing_runs()

    run(all_of_it())


def test_two_streams_of_one_fanout_run_beside_each_other(run: Run) -> None:
    async def stream() -> None:
        meeting = asyncio.Barrier(2)

        async def fn(_: int) -> None:
            await meeting.wait()

        async with Fanout() as f:

            async def consume() -> int:
                return len([outcome async for outcome in f.stream(fn, [1])])

            assert await asyncio.gather(consume(), consume()) == [1, 1]

    run(stream())


@pytest.mark.parametrize("leave", ["break", "close", "with"])
def test_leaving_the_iteration_early_cancels_what_runs(leave: str) -> None:
    cleaned: list[int] = []

    async def fn(number: int) -> int:
        if number == 0:
            return number
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(number)
        return number

    outcomes = fanout(fn, itertools.count(), limit=5)
    if leave == "break":
        for _ in outcomes:
            break
        del outcomes
    elif leave == "close":
        next(outcomes)
        outcomes.close()
        assert not any(outcome.ok for outcome in outcomes)
    else:
        with outcomes:
            next(outcomes)
    assert sorted(cleaned) == [1, 2, 3, 4, 5]


def test_inside_of_a_running_loop_the_way_that_works_is_named(run: Run) -> None:
    async def blocking() -> None:
        with pytest.raises(RuntimeError, match=r"would block the event loop.*async with Fanout"):
            fanout(itself, [1])
        with pytest.raises(RuntimeError, match=r"would block the event loop.*async with Fanout"):
            fanout(abs, [1])

    run(blocking())


def test_the_reason_of_the_mode_says_whether_asyncio_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = fanout(itself, [1])
    assert (outcomes.mode, outcomes.reason) == ("asyncio", "an async def, and asyncio is imported")
    assert outcomes.report.startswith("mode asyncio: an async def, and asyncio is imported")
    monkeypatch.delitem(sys.modules, "asyncio")
    outcomes = fanout(itself, [1])
    assert (outcomes.mode, outcomes.reason) == ("lean", "an async def, and asyncio is not imported")


def test_in_a_thread_of_a_program_with_a_loop_it_works(run: Run) -> None:
    def in_thread() -> list[int]:
        return [outcome.unwrap() for outcome in fanout(itself, range(3))]

    async def program() -> None:
        assert await asyncio.to_thread(in_thread) == [0, 1, 2]

    run(program())


def test_modes_with_a_loop_of_their_own_are_refused_where_one_runs() -> None:
    for mode in ("lean", "green"):
        with pytest.raises(ValueError, match=r"use fanout\(\)"):
            Fanout(mode=mode)
