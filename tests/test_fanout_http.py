"""HTTP to hundreds of hosts at once with httpx: from coroutines and from functions that block."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import http_hosts
import httpx
import loopback
import pytest
from suite import PATIENCE_S

from ungil.fanout import Backoff, Fanout, Outcome, fanout

EXAMPLE = Path(__file__).parents[1] / "examples/fanout_http.py"
UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=None)


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    """Hosts at all loopback addresses."""
    with http_hosts.running() as running:
        yield running


def urls(port: int, path: str, number: int) -> list[str]:
    """The same path on so many hosts."""
    return [f"http://{address}:{port}{path}" for address in loopback.addresses(number)]


async def streamed(items: list[str], **options: object) -> list[Outcome]:
    """Gets all of them with one client, in a program with a loop of its own."""
    async with (
        httpx.AsyncClient(limits=UNLIMITED, timeout=None) as client,
        Fanout(**options) as f,  # pyright: ignore[reportArgumentType]
    ):

        async def get(url: str) -> str:
            answer = await client.get(url)
            return answer.raise_for_status().text.strip()

        return [outcome async for outcome in f.stream(get, items)]


def test_two_hundred_requests_wait_for_their_answers_at_once(port: int) -> None:
    items = urls(port, "/meet/200", 200)
    outcomes = asyncio.run(streamed(items, limit=200, timeout=PATIENCE_S))
    answers = {outcome.item: outcome.unwrap() for outcome in outcomes}
    assert answers == dict(zip(items, loopback.addresses(200), strict=True))


def test_functions_that_block_wait_in_threads(port: int) -> None:
    with httpx.Client(limits=UNLIMITED, timeout=None) as client:
        outcomes = fanout(
            lambda url: client.get(url).text.strip(), urls(port, "/meet/100", 100), limit=100
        )
        assert outcomes.raise_for_failures() == loopback.addresses(100)


def test_a_limit_that_nobody_gave_gets_all_pages_too(port: int) -> None:
    outcomes = asyncio.run(streamed(urls(port, "/pause/0.01", 200)))
    assert Counter(outcome.ok for outcome in outcomes) == {True: 200}


def test_servers_that_fail_in_their_own_ways_do_not_touch_the_others(port: int) -> None:
    with loopback.bound() as refusing:
        expected: dict[str, type[BaseException] | None] = {
            f"http://127.1.0.1:{port}/": None,
            f"http://127.1.0.2:{port}/status/500": httpx.HTTPStatusError,
            f"http://127.1.0.3:{port}/half": httpx.RemoteProtocolError,
            f"http://127.1.0.4:{port}/garbage": httpx.RemoteProtocolError,
            f"http://127.1.0.5:{refusing.getsockname()[1]}/": httpx.ConnectError,
            f"http://127.1.0.6:{port}/silence": TimeoutError,
            "http://": httpx.UnsupportedProtocol,
        }
        outcomes = asyncio.run(streamed(list(expected), timeout=5))
    assert {outcome.item: type(outcome.exception) for outcome in outcomes} == {
        url: kind or type(None) for url, kind in expected.items()
    }


def test_what_a_server_had_no_time_for_is_asked_for_again(port: int) -> None:
    items = [f"http://127.1.0.1:{port}/flaky/{number % 3}/{number}" for number in range(30)]

    def busy(error: Exception) -> bool:
        return isinstance(error, httpx.HTTPStatusError) and error.response.status_code == 503

    outcomes = asyncio.run(streamed(items, retries=2, retry_if=busy, backoff=Backoff(0)))
    attempts = {outcome.index: outcome.attempts for outcome in outcomes if outcome.ok}
    assert attempts == {number: number % 3 + 1 for number in range(30)}


def test_no_server_gets_more_requests_at_once_than_its_group_may_have(port: int) -> None:
    addresses = loopback.addresses(4, first="127.2.0.1")
    most = dict(zip(addresses, (3, 4, 5, 6), strict=True))
    # So many at a time meet; if there were fewer they would wait for ever.
    items = [f"http://{address}:{port}/meet/{most[address]}" for address in addresses] * 60
    outcomes = asyncio.run(
        streamed(
            items,
            limit=1000,
            group=lambda url: httpx.URL(url).host,
            per_group=most,
            timeout=PATIENCE_S,
        )
    )
    assert Counter(outcome.ok for outcome in outcomes) == {True: 240}
    answers = asyncio.run(streamed([f"http://{address}:{port}/most" for address in addresses]))
    assert {httpx.URL(a.item).host: int(a.unwrap()) for a in answers} == most


def test_the_example_says_which_pages_came(port: int, tmp_path: Path) -> None:
    base = f"http://127.1.0.1:{port}"
    names = tmp_path / "urls.txt"
    names.write_text(f"{base}/\n{base}/flaky/1/example\n{base}/status/404\n")
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), str(names)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    *pages, last = ended.stdout.splitlines()
    assert sorted(pages) == [f"{base}/: 10 bytes", f"{base}/flaky/1/example: 10 bytes"]
    assert last == "3 pages, 1 failed"
    (failure,) = ended.stderr.splitlines()
    assert failure.startswith(f"{base}/status/404: Client error '404")
    assert ended.returncode == 1
