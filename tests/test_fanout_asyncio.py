"""Fan-out of coroutines on asyncio's own loop and on uvloop's: what no other mode promises."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest
from fanout_contract.modes import ASYNCIO, UVLOOP, Mode

from ungil.fanout import Fanout, Outcome, fanout


@pytest.fixture(params=[ASYNCIO, UVLOOP], ids=str, autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mode:
    """Every test runs on each of the loops."""
    mode: Mode = request.param
    mode.begin(monkeypatch)
    return mode


async def itself(item: Any) -> Any:
    """Comes back with its item, and not at once."""
    await asyncio.sleep(0)
    return item


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


def test_time_outs_of_the_function_itself_are_its_own() -> None:
    async def fn(own: float) -> str:
        try:
            async with asyncio.timeout(own):
                await asyncio.Event().wait()
        except TimeoutError:
            return "in time"
        return "never"

    first, second = fanout(fn, [0.01, 60], timeout=1)
    assert first.value == "in time"
    assert isinstance(second.exception, TimeoutError)


def test_a_coroutine_that_does_not_let_itself_be_cancelled_is_abandoned(
    loop: Mode, monkeypatch: pytest.MonkeyPatch
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

    (outcome,) = loop.run(stream())
    assert isinstance(outcome.exception, TimeoutError)
    assert outcome.abandoned


def test_inside_of_a_running_loop_the_way_that_works_is_named(loop: Mode) -> None:
    async def blocking() -> None:
        with pytest.raises(RuntimeError, match=r"would block the event loop.*async with Fanout"):
            fanout(itself, [1])
        with pytest.raises(RuntimeError, match=r"would block the event loop.*async with Fanout"):
            fanout(abs, [1])

    loop.run(blocking())


def test_the_reason_of_the_mode_says_whether_asyncio_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = fanout(itself, [1])
    assert (outcomes.mode, outcomes.reason) == ("asyncio", "an async def, and asyncio is imported")
    assert outcomes.report.startswith("mode asyncio: an async def, and asyncio is imported")
    monkeypatch.delitem(sys.modules, "asyncio")
    outcomes = fanout(itself, [1])
    assert (outcomes.mode, outcomes.reason) == ("lean", "an async def, and asyncio is not imported")


def test_in_a_thread_of_a_program_with_a_loop_it_works(loop: Mode) -> None:
    def in_thread() -> list[int]:
        return [outcome.unwrap() for outcome in fanout(itself, range(3))]

    async def program() -> None:
        assert await asyncio.to_thread(in_thread) == [0, 1, 2]

    loop.run(program())


def test_modes_with_a_loop_of_their_own_are_refused_where_one_runs() -> None:
    for mode in ("lean", "green"):
        with pytest.raises(ValueError, match=r"use fanout\(\)"):
            Fanout(mode=mode)


def test_a_task_of_a_coroutine_that_leaves_ends_whoever_awaits_it_and_nobody_else() -> None:
    async def leaves() -> None:
        sys.exit(3)

    async def fn(number: int) -> int:
        if number == 1:
            await asyncio.create_task(leaves())
        await asyncio.sleep(0)
        return number

    outcomes = list(fanout(fn, range(3), mode="asyncio"))
    assert [outcome.value for outcome in outcomes] == [0, None, 2]
    assert isinstance(outcomes[1].exception, SystemExit)


def test_what_an_ordinary_function_returns_is_awaited() -> None:
    @functools.cache  # as any decorator that knows no coroutines
    def starts(item: int) -> Awaitable[int]:
        return itself(item)

    for fn in (starts, lambda item: asyncio.ensure_future(itself(item))):
        assert [it.value for it in fanout(fn, [1, 2], mode="asyncio")] == [1, 2]

    async def stream() -> list[Any]:
        async with Fanout(mode="asyncio") as f:
            return [it.value async for it in f.stream(lambda item: itself(item), [1])]

    assert asyncio.run(stream()) == [1]


def test_an_ordinary_function_that_returns_nothing_to_await_is_told_so() -> None:
    [outcome] = fanout(abs, [-1], mode="asyncio")
    assert isinstance(outcome.exception, TypeError)
    assert str(outcome.exception) == (
        'abs returned 1, which asyncio cannot await: make it an async def, or use mode="threads"'
    )
