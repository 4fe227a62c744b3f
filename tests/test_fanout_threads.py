"""What a fan-out of functions in threads promises."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

import pytest

from ungil.fanout import Backoff, Fanout, Outcome, fanout

# How many finished outcomes wait at most for one before them.
WINDOW = 10_000
# Against hangs: far more than anything here takes on the slowest machine.
PATIENCE_S = 60


def threads() -> list[threading.Thread]:
    """Those of fan-outs that live."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("fanout-")]


@pytest.fixture(autouse=True)
def _none_is_left() -> Generator[None]:
    """Every test leaves no thread behind; what it released may take a moment to end."""
    yield
    for thread in threads():
        thread.join(PATIENCE_S)
    assert threads() == []


def itself(item: Any) -> Any:
    """What comes back is what went in."""
    return item


async def streamed(fn: Callable[[Any], Any], items: Any, **options: Any) -> list[Outcome]:
    """The outcomes of a stream, as they came."""
    async with Fanout(**options) as f:
        return [outcome async for outcome in f.stream(fn, items)]


def waits(event: threading.Event) -> None:
    """Waits for an event that the test is going to set."""
    if not event.wait(PATIENCE_S):
        raise RuntimeError("the test has not gone on")


class Crowd:
    """Counts who is inside at once, by group."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: Counter[Any] = Counter()
        self.most: Counter[Any] = Counter()

    def visit(self, group: Any) -> None:
        """Inside for long enough that others come as well."""
        with self.lock:
            self.inside[group] += 1
            self.inside["all"] += 1
            self.most |= self.inside
        time.sleep(0.002)
        with self.lock:
            self.inside[group] -= 1
            self.inside["all"] -= 1


# Order, laziness, memory.


def test_outcomes_are_in_the_order_of_the_items_whatever_ends_first() -> None:
    events = [threading.Event() for _ in range(10)]
    events[-1].set()
    ended: list[int] = []

    def backwards(number: int) -> int:
        waits(events[number])
        ended.append(number)
        if number > 0:
            events[number - 1].set()
        return number

    outcomes = fanout(backwards, range(10))
    assert outcomes.mode == "threads"
    assert [outcome.value for outcome in outcomes] == list(range(10))
    assert ended == list(reversed(range(10)))


def test_a_stream_gives_outcomes_as_they_end() -> None:
    released = threading.Event()

    def fn(number: int) -> int:
        if number == 0:
            waits(released)
        return number

    async def stream() -> list[int]:
        seen: list[int] = []
        async with Fanout(limit=2) as f:
            async for outcome in f.stream(fn, range(4)):
                seen.append(outcome.value)
                if len(seen) == 3:
                    released.set()
        return seen

    seen = asyncio.run(stream())
    assert (sorted(seen), seen[-1]) == ([0, 1, 2, 3], 0)


def test_no_more_items_are_taken_than_the_window_and_the_limit_allow() -> None:
    released = threading.Event()
    last = 0

    def items() -> Generator[int]:
        nonlocal last
        for last in itertools.count():
            yield last
            if last == WINDOW - 1:
                # The others have gone on without the first.
                released.set()

    def fn(number: int) -> int:
        if number == 0:
            waits(released)
        return number

    with fanout(fn, items(), limit=4) as outcomes:
        assert next(outcomes).value == 0
        for _ in range(100):
            next(outcomes)
    assert last <= WINDOW + 4 + 100


def test_the_input_is_asked_by_one_thread_at_a_time() -> None:
    crowd = Crowd()

    class Items:
        left = 100

        def __iter__(self) -> Items:
            return self

        def __next__(self) -> int:
            if self.left == 0:
                raise StopIteration
            self.left -= 1
            crowd.visit("input")
            return self.left

    assert sum(outcome.ok for outcome in fanout(itself, Items(), limit=8)) == 100
    assert crowd.most["input"] == 1


def test_what_the_input_raises_comes_after_the_outcomes_before_it() -> None:
    def items() -> Generator[int]:
        yield from range(3)
        raise OSError("the list of hosts broke off")

    seen: list[int] = []
    with pytest.raises(OSError, match="broke off"):  # noqa: PT012
        for outcome in fanout(itself, items()):
            seen.append(outcome.value)
    assert seen == [0, 1, 2]


def test_no_items_give_no_outcomes_and_no_thread() -> None:
    before = threading.active_count()
    outcomes = fanout(itself, [])
    assert list(outcomes) == []
    assert threading.active_count() == before
    assert asyncio.run(streamed(itself, [])) == []


def test_there_are_no_more_threads_than_items_or_than_the_limit() -> None:
    meeting = threading.Barrier(3)

    def fn(_: int) -> int:
        meeting.wait(PATIENCE_S)
        return len(threads())

    assert max(outcome.value for outcome in fanout(fn, range(3), limit=50)) == 3
    assert max(outcome.value for outcome in fanout(fn, range(30), limit=3)) == 3


# Functions.


class Device:
    """What has something to call."""

    def check(self, item: int) -> int:
        """A bound method."""
        return item

    def __call__(self, item: int) -> int:
        """The object itself."""
        return item


@pytest.mark.parametrize(
    "fn",
    [
        Device().check,
        Device(),
        functools.partial(max, 0),
        abs,
        int,
        lambda item: item,  # pyright: ignore[reportUnknownLambdaType]
    ],
    ids=["bound", "object", "partial", "builtin", "class", "lambda"],
)
def test_anything_can_be_called(fn: Callable[[Any], Any]) -> None:
    outcomes = fanout(fn, [1, 2])
    assert outcomes.mode == "threads"
    assert [outcome.value for outcome in outcomes] == [1, 2]


def test_a_function_that_returns_a_coroutine_is_told_what_it_should_be() -> None:
    async def check(item: int) -> int:
        return item

    def disguised(item: int) -> Coroutine[Any, Any, int]:
        return check(item)

    (outcome,) = fanout(disguised, [1])
    assert isinstance(outcome.exception, TypeError)
    assert "async def" in str(outcome.exception)


def test_functions_see_the_context_of_the_caller_and_not_of_each_other() -> None:
    variable = contextvars.ContextVar("variable", default="nothing")

    def fn(item: int) -> str:
        seen = variable.get()
        variable.set(f"item {item}")
        return seen

    token = variable.set("the caller's")
    assert [outcome.value for outcome in fanout(fn, range(4), limit=1)] == ["the caller's"] * 4
    variable.reset(token)

    async def stream() -> list[str]:
        variable.set("the stream's")
        return [outcome.unwrap() for outcome in await streamed(fn, range(4), limit=1)]

    assert asyncio.run(stream()) == ["the stream's"] * 4


# Failures, time-outs, retries.


def test_an_exception_is_kept_with_its_traceback() -> None:
    def innermost(number: int) -> float:
        return 1 / number

    def fn(number: int) -> float:
        return innermost(number)

    for outcomes in (list(fanout(fn, [1, 0, 2])), asyncio.run(streamed(fn, [1, 0, 2]))):
        (failed,) = [outcome for outcome in outcomes if not outcome.ok]
        assert (failed.item, failed.value, failed.attempts) == (0, None, 1)
        assert failed.exception is not None
        names = [frame.name for frame in traceback.extract_tb(failed.exception.__traceback__)]
        assert names[-2:] == ["fn", "innermost"]


def test_a_thread_whose_time_is_over_is_abandoned_and_others_go_on() -> None:
    released = threading.Event()

    def fn(number: int) -> int:
        if number % 2:
            waits(released)
        return number

    async def stream() -> list[Outcome]:
        outcomes = await streamed(fn, range(6), timeout=0.05, limit=2)
        return sorted(outcomes, key=lambda outcome: outcome.index)

    for run in (lambda: list(fanout(fn, range(6), timeout=0.05, limit=2)), stream_now(stream)):
        outcomes = run()
        assert [outcome.value for outcome in outcomes] == [0, None, 2, None, 4, None]
        for outcome in outcomes[1::2]:
            assert isinstance(outcome.exception, TimeoutError)
            assert "0.05 s" in str(outcome.exception)
            assert outcome.abandoned
            assert outcome.seconds >= 0.05
        # Nobody waited for them.
        assert len(threads()) == 3
        released.set()
        for thread in threads():
            thread.join(PATIENCE_S)
        released.clear()


def stream_now(stream: Callable[[], Coroutine[Any, Any, list[Outcome]]]) -> Callable[[], Any]:
    """As a function without arguments."""
    return lambda: asyncio.run(stream())


@pytest.mark.parametrize("how", ["fanout", "Fanout"])
def test_a_program_ends_although_threads_were_abandoned(how: str) -> None:
    program = f"""
import asyncio, threading
from ungil.fanout import Fanout, fanout

def hangs(_):
    threading.Event().wait()

async def stream():
    async with Fanout(timeout=0.05) as f:
        return [outcome async for outcome in f.stream(hangs, range(3))]

outcomes = list(fanout(hangs, range(3), timeout=0.05)) if {how!r} == "fanout" else asyncio.run(stream())
print([outcome.abandoned for outcome in outcomes])
"""  # noqa: E501
    words = [sys.executable, "-W", "error", "-c", program]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("[True, True, True]\n", "", 0)


def test_what_an_abandoned_thread_does_later_changes_nothing() -> None:
    released = threading.Event()

    def late(_: int) -> str:
        waits(released)
        return "too late"

    (outcome,) = fanout(late, [0], timeout=0.02)
    released.set()
    for thread in threads():
        thread.join(PATIENCE_S)
    assert isinstance(outcome.exception, TimeoutError)
    assert (outcome.value, outcome.abandoned) == (None, True)


class Flaky:
    """Fails so many times for each item, which is its number and that of its failures."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()

    def __call__(self, item: tuple[int, int]) -> int:
        number, failures = item
        self.calls[number] += 1
        if self.calls[number] <= failures:
            raise ConnectionError(f"failure {self.calls[number]}")
        return self.calls[number]


def test_what_failed_is_tried_again_as_often_as_said() -> None:
    items = list(enumerate([0, 1, 2, 3, 0]))
    options: dict[str, Any] = {"retries": 2, "backoff": Backoff(0)}
    streamed_outcomes = asyncio.run(streamed(Flaky(), items, **options))
    for outcomes in (
        list(fanout(Flaky(), items, **options)),
        sorted(streamed_outcomes, key=lambda outcome: outcome.index),
    ):
        assert [outcome.attempts for outcome in outcomes] == [1, 2, 3, 3, 1]
        assert [outcome.value for outcome in outcomes] == [1, 2, 3, None, 1]
        assert str(outcomes[3].exception) == "failure 3"


def test_only_what_the_predicate_wants_is_tried_again() -> None:
    def first_failure(error: Exception) -> bool:
        return str(error) == "failure 1"

    (outcome,) = fanout(Flaky(), [(0, 9)], retries=5, retry_if=first_failure, backoff=Backoff(0))
    assert (outcome.attempts, str(outcome.exception)) == (2, "failure 2")


@pytest.mark.parametrize("option", ["retry_if", "group"])
def test_an_error_of_the_callers_own_functions_is_raised(option: str) -> None:
    def broken(_: object) -> bool:
        raise LookupError("no such thing")

    options: dict[str, Any] = {"retry_if": broken, "retries": 1}
    if option == "group":
        options = {"group": broken, "per_group": 1}
    with pytest.raises(LookupError, match="no such thing"):
        list(fanout(Flaky(), [(0, 1), (1, 1)], limit=1, **options))


def test_the_wait_before_another_attempt_grows() -> None:
    started: list[float] = []

    def fn(_: int) -> None:
        started.append(time.monotonic())
        raise ConnectionError

    (outcome,) = fanout(fn, [0], retries=2, backoff=Backoff(0.02, factor=3, jitter=0))
    first, second, third = started
    assert second - first >= 0.02
    assert third - second >= 0.06
    assert outcome.attempts == 3


# Limits.


@pytest.mark.parametrize("limit", [1, 7])
def test_never_more_than_the_limit_run_at_once(limit: int) -> None:
    for stream in (False, True):
        crowd = Crowd()
        items = ["all groups"] * 50
        if stream:
            asyncio.run(streamed(crowd.visit, items, limit=limit))
        else:
            assert len(list(fanout(crowd.visit, items, limit=limit))) == 50
        assert crowd.most["all"] == limit


def test_never_more_of_a_group_run_at_once_than_its_own_limit() -> None:
    items = [f"site {number % 4}" for number in range(80)]
    crowd = Crowd()
    outcomes = list(fanout(crowd.visit, items, limit=50, group=str, per_group=3))
    assert [outcome.item for outcome in outcomes] == items
    assert {crowd.most[item] for item in items} == {3}
    assert crowd.most["all"] <= 12


def test_a_crowded_group_does_not_keep_the_others_from_running() -> None:
    released = threading.Event()

    def fn(group: str) -> None:
        if group == "other":
            released.set()
        waits(released)

    # If those of the first group took slots, or the input stopped at them, this would hang.
    items = ["crowded"] * 500 + ["other"]
    assert all(o.ok for o in fanout(fn, items, limit=10, group=str, per_group={"crowded": 1}))


def test_starts_are_no_more_frequent_than_the_rate() -> None:
    started: list[float] = []

    def fn(_: int) -> None:
        started.append(time.monotonic())

    list(fanout(fn, range(11), rate=100))
    # One may go at once, the others a hundredth of a second after each other.
    assert max(started) - min(started) >= 0.1 - 0.011


# Ends.


@pytest.mark.parametrize("leave", ["break", "close", "with", "error"])
def test_leaving_the_iteration_early_starts_nothing_more(leave: str) -> None:
    started: list[int] = []
    released = threading.Event()

    def fn(number: int) -> int:
        started.append(number)
        if number:
            waits(released)
        return number

    def consume() -> None:
        outcomes = fanout(fn, itertools.count(), limit=5)
        assert next(outcomes).value == 0
        released.set()
        if leave == "close":
            outcomes.close()
        elif leave == "with":
            with outcomes:
                pass
        elif leave == "error":
            raise LookupError

    if leave == "error":
        with pytest.raises(LookupError):
            consume()
    else:
        consume()
    for thread in threads():
        thread.join(PATIENCE_S)
    number = len(started)
    time.sleep(0.05)
    assert len(started) == number
    assert threads() == []


def test_leaving_starts_nothing_of_what_waits_for_its_group() -> None:
    started: list[int] = []
    released = threading.Event()

    def fn(number: int) -> int:
        started.append(number)
        if number:
            waits(released)
        return number

    outcomes = fanout(fn, range(100), limit=5, group=lambda _: 0, per_group=2)
    assert next(outcomes).value == 0
    closing = threading.Thread(target=outcomes.close)
    closing.start()
    while not outcomes._closed:  # pyright: ignore[reportPrivateUsage]
        time.sleep(0.001)
    released.set()
    closing.join(PATIENCE_S)
    # Those that ran at the time, and not the ninety others.
    assert len(started) <= 10


def test_leaving_the_block_waits_for_what_runs_and_starts_nothing_more() -> None:
    started: list[int] = []
    released = threading.Event()

    def fn(number: int) -> int:
        started.append(number)
        if number:
            waits(released)
        return number

    async def stream() -> None:
        async with Fanout(limit=5) as f:
            async for outcome in f.stream(fn, itertools.count()):
                assert outcome.index == 0
                break
            asyncio.get_running_loop().call_later(0.02, released.set)
        number = len(started)
        assert threads() == []
        await asyncio.sleep(0.02)
        assert len(started) == number

    asyncio.run(stream())


def test_the_loop_of_the_program_goes_on_while_threads_work() -> None:
    async def program() -> int:
        turns = 0
        released = threading.Event()

        async def turning() -> None:
            nonlocal turns
            while turns < 100:
                turns += 1
                await asyncio.sleep(0)
            released.set()

        task = asyncio.create_task(turning())
        await streamed(waits, [released] * 3)
        await task
        return turns

    assert asyncio.run(program()) == 100


def test_items_that_come_slowly_and_asynchronously_are_taken_one_by_one() -> None:
    async def stream() -> list[int]:
        answered = asyncio.Event()
        seen: list[int] = []

        async def items() -> AsyncGenerator[int]:
            for number in range(5):
                yield number
                await answered.wait()
                answered.clear()

        async with Fanout(limit=2) as f:
            async for outcome in f.stream(itself, items()):
                seen.append(outcome.unwrap())
                answered.set()
        return seen

    assert asyncio.run(stream()) == list(range(5))


def test_a_fan_out_within_a_fan_out_works() -> None:
    def outer(number: int) -> list[int]:
        return [outcome.unwrap() for outcome in fanout(itself, range(number))]

    assert [outcome.value for outcome in fanout(outer, range(4))] == [
        [],
        [0],
        [0, 1],
        [0, 1, 2],
    ]
