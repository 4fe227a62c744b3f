"""How many `limit="auto"` starts before anything has come back, and whom it hears."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from suite import PATIENCE_S

from ungil.fanout import Fanout, fanout, sleep

ALL = 300


class Gate:
    """Counts who has begun until the first of them may go on."""

    def __init__(self) -> None:
        self.begun = 0
        self.most: int | None = None

    async def __call__(self, _item: Any) -> None:
        """Waits as for a descriptor: for a future that something else completes."""
        self.begun += 1
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        loop.call_later(0.05, future.set_result, None)
        await future
        if self.most is None:
            self.most = self.begun


def begun_before_the_first_end(items: Iterable[Any], **options: Any) -> int | None:
    gate = Gate()
    assert all(outcome.ok for outcome in fanout(gate, items, mode="asyncio", **options))
    return gate.most


def test_items_that_say_nothing_are_taken_to_share_a_service() -> None:
    assert begun_before_the_first_end(range(ALL)) == 16


@pytest.mark.parametrize(
    "items",
    [
        pytest.param({f"host-{number}": number for number in range(ALL)}, id="keys of a mapping"),
        pytest.param([f"https://host-{number}/x" for number in range(ALL)], id="urls of hosts"),
    ],
)
def test_items_that_are_hosts_of_their_own_begin_all_at_once(items: Iterable[Any]) -> None:
    assert begun_before_the_first_end(items) == ALL


def test_urls_of_one_host_are_one_service() -> None:
    urls = [f"https://user@host:8080/{number}" for number in range(ALL)]
    assert begun_before_the_first_end(urls) == 16


def test_urls_of_some_hosts_begin_with_a_few_for_each() -> None:
    urls = [f"https://host-{number % 12}/{number}" for number in range(ALL)]
    most = begun_before_the_first_end(urls)
    assert most is not None
    assert 16 <= most <= 12 * 16


class Url:
    """As those of yarl and httpx."""

    scheme = "https"

    def __init__(self, host: str) -> None:
        self.host = host


def test_objects_with_a_scheme_and_a_host_are_urls() -> None:
    assert begun_before_the_first_end([Url(f"host-{number}") for number in range(ALL)]) == ALL
    assert begun_before_the_first_end([Url("host") for _ in range(ALL)]) == 16


class Sleepers:
    """All of them sleep for ever, but for the last, which ends at once."""

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self._sleep = sleep

    async def __call__(self, item: int) -> int:
        if item < ALL:
            await self._nap()
        return item

    async def _nap(self) -> None:
        await self._sleep(3600)


@pytest.mark.parametrize(("mode", "sleeps"), [("asyncio", asyncio.sleep), ("lean", sleep)])
def test_items_that_only_sleep_begin_all_at_once(mode: Any, sleeps: Any) -> None:
    outcomes = fanout(Sleepers(sleeps), range(ALL + 1), mode=mode, in_order=False)
    assert next(iter(outcomes)).item == ALL
    outcomes.close()


def test_threads_that_only_sleep_begin_200_at_once() -> None:
    begun: list[int] = []
    before_the_first_end: list[int] = []

    def nap(item: int) -> None:
        begun.append(item)
        until_s = time.monotonic() + PATIENCE_S
        while len(begun) < 200 and time.monotonic() < until_s:
            time.sleep(0.2)
        before_the_first_end.append(len(begun))

    assert all(outcome.ok for outcome in fanout(nap, range(200), mode="threads"))
    assert before_the_first_end[0] == 200


def test_threads_that_wait_for_anything_else_begin_as_32() -> None:
    gate = threading.Event()
    begun: list[int] = []
    before_the_first_end: list[int] = []

    def wait(item: int) -> None:
        begun.append(item)
        if len(begun) == 32:
            threading.Timer(0.2, gate.set).start()
        gate.wait()
        before_the_first_end.append(len(begun))

    assert all(outcome.ok for outcome in fanout(wait, range(100), mode="threads"))
    assert before_the_first_end[0] == 32


def test_items_of_a_stream_that_only_sleep_begin_all_at_once() -> None:
    async def later() -> AsyncIterator[int]:
        for number in range(ALL + 1):
            yield number

    async def first(items: Iterable[int] | AsyncIterator[int]) -> int:
        async with Fanout() as f:
            async for outcome in f.stream(Sleepers(asyncio.sleep), items):
                return outcome.item
        raise AssertionError("nothing came")

    assert asyncio.run(first(range(ALL + 1))) == ALL
    assert asyncio.run(first(later())) == ALL


def test_who_only_lets_others_go_first_does_not_sleep() -> None:
    gate = Gate()

    async def fn(item: int) -> None:
        await asyncio.sleep(0)
        await gate(item)

    assert all(outcome.ok for outcome in fanout(fn, range(ALL), mode="asyncio"))
    assert gate.most == 16


class TooMany(Exception):
    """As HTTP libraries raise an answer 429."""

    def __init__(self, **headers: str) -> None:
        super().__init__("429")
        self.status, self.headers = 429, headers


@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {}])
def test_a_service_that_says_too_many_requests_is_asked_for_fewer(headers: dict[str, str]) -> None:
    inside = turned_away = 0

    async def ask(_item: int) -> None:
        nonlocal inside, turned_away
        if inside >= 20:
            turned_away += 1
            raise TooMany(**headers)
        inside += 1
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        loop.call_later(0.01, future.set_result, None)
        await future
        inside -= 1

    outcomes = fanout(ask, range(1_000), mode="asyncio", retries=50)
    assert all(outcome.ok for outcome in outcomes)
    assert turned_away < 400
    assert "items were rejected" in outcomes.report


def test_a_rate_that_a_service_calls_too_much_is_lowered() -> None:
    def ask(_item: int) -> None:
        raise TooMany()

    begun = time.monotonic()
    outcomes = list(fanout(ask, range(60), rate=200, limit=5))
    assert [outcome.ok for outcome in outcomes] == [False] * 60
    # Two at once, the others at no more than 140 a second.
    assert time.monotonic() - begun > 55 / 140


def test_an_item_that_may_be_tried_again_sooner_than_another_is() -> None:
    def backoff(_error: Exception, _attempt: int) -> float:
        return 3600 if len(tried) == 1 else 0.001

    tried: list[str] = []

    async def fn(item: str) -> str:
        tried.append(item)
        if tried.count(item) == 1:
            raise OSError(item)
        return item

    outcomes = fanout(
        fn, ["late", "soon"], mode="asyncio", retries=1, backoff=backoff, in_order=False
    )
    assert next(iter(outcomes)).item == "soon"
    outcomes.close()
