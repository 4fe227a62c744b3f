"""What `limit="auto"` does in the engine, and says; what it finds is tested in Rust."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ungil.fanout import Fanout, fanout, sleep


async def wait_a_little(_item: int) -> None:
    await sleep(0.005)


def test_the_report_says_what_was_found_and_what_there_is_room_for() -> None:
    outcomes = fanout(wait_a_little, range(100), mode="lean")
    assert all(outcome.ok for outcome in outcomes)
    report = outcomes.report
    assert report.startswith("mode lean: asked for. limit ")
    assert "An item takes" in report
    assert "At most: " in report


def test_the_report_of_a_limit_that_is_a_number_says_only_the_mode() -> None:
    outcomes = fanout(wait_a_little, range(10), mode="lean", limit=5)
    assert all(outcome.ok for outcome in outcomes)
    assert outcomes.report == "mode lean: asked for"


def nothing(_item: int) -> None:
    """A function for threads."""


async def nothing_later(_item: int) -> None:
    """A function for asyncio."""


@pytest.mark.parametrize(
    ("fn", "mode"),
    [(nothing, "threads: not an async def"), (nothing_later, "asyncio: an async def")],
)
def test_a_fanout_reports_of_its_latest_stream_also_when_that_is_over(
    fn: Callable[[int], None] | Callable[[int], Coroutine[Any, Any, None]], mode: str
) -> None:
    async def main() -> tuple[str, str, str]:
        f = Fanout()
        before = f.report
        async with f:
            assert [outcome.ok async for outcome in f.stream(fn, range(3))] == [True] * 3
            within = f.report
        return before, within, f.report

    before, within, after = asyncio.run(main())
    assert before == ""
    assert within.startswith(f"mode {mode}. limit ")
    assert "At most: " in within
    assert after == within


def test_items_of_one_group_do_not_begin_in_one_instant() -> None:
    outcomes = list(fanout(wait_a_little, range(16), mode="lean", group=lambda _: "site"))
    order = [outcome.index for outcome in sorted(outcomes, key=lambda it: it.started or 0.0)]
    assert order[0] == 0
    assert order != sorted(order), "each is put off for a time of its own"


def test_items_of_different_groups_begin_as_they_come() -> None:
    outcomes = fanout(wait_a_little, range(64), mode="lean", group=lambda item: item)
    began = [it.started for it in sorted(outcomes, key=lambda it: it.index)]
    # Neighbours may begin in one moment, as far as the clock can tell.
    assert all(one < later for one, later in zip(began, began[8:], strict=False))
