"""How long an item waits before it is tried again, if its function or its server has a say."""

# pyright: basic, reportArgumentType=false
# (others' libraries have no types, and some of this is wrong on purpose)

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError

import aiohttp
import httpx
import pytest
import requests

from ungil.fanout import Backoff, fanout

# The waits of the backoff itself: none, so that what is asserted comes from elsewhere.
AT_ONCE = Backoff(0)


class Busy(BaseHTTPRequestHandler):
    """Answers each path with a status and a Retry-After at first, and well after that."""

    seen: list[str]

    def do_GET(self) -> None:
        is_first = self.path not in self.seen
        self.seen.append(self.path)
        _, status, kind, seconds, _ = self.path.split("/")
        self.send_response(int(status) if is_first else 200)
        if kind == "seconds":
            self.send_header("Retry-After", seconds)
        elif kind == "date":
            self.send_header("Retry-After", formatdate(time.time() + int(seconds), usegmt=True))
        elif kind == "nonsense":
            self.send_header("retry-after", "soon")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def busy() -> Generator[str]:
    """The address of a server that is busy at first."""
    handler = type("Handler", (Busy,), {"seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def by_urllib(url: str) -> None:
    try:
        urllib.request.urlopen(url).close()
    except HTTPError as error:
        error.close()
        raise


def by_requests(url: str) -> None:
    with requests.get(url, timeout=60) as answer:
        answer.raise_for_status()


def by_httpx(url: str) -> None:
    httpx.get(url).raise_for_status()


async def by_async_httpx(url: str) -> None:
    async with httpx.AsyncClient() as client:
        (await client.get(url)).raise_for_status()


async def by_aiohttp(url: str) -> None:
    async with aiohttp.ClientSession(raise_for_status=True) as session, session.get(url):
        pass


GETS = [by_urllib, by_requests, by_httpx, by_async_httpx, by_aiohttp]


def waits(get: Callable[[str], Any], url: str, **options: Any) -> tuple[int, float]:
    """How often an item ran, and for how many seconds in all."""
    (outcome,) = fanout(get, [url], retries=1, **options)
    outcome.unwrap()
    return outcome.attempts, outcome.finished - outcome.queued


@pytest.mark.parametrize("get", GETS)
@pytest.mark.parametrize(
    ("path", "least_s"), [("/429/seconds/1/", 1.0), ("/503/date/3/", 1.0)], ids=["429", "503"]
)
def test_a_server_that_tells_when_to_come_back_is_asked_no_earlier(
    get: Callable[[str], Any], path: str, least_s: float, busy: str
) -> None:
    attempts, seconds = waits(get, busy + path, backoff=AT_ONCE)
    assert attempts == 2
    assert seconds >= least_s


@pytest.mark.parametrize("path", ["/500/seconds/600/", "/503/nonsense/600/", "/429/none/600/"])
def test_other_answers_wait_as_the_backoff_says(path: str, busy: str) -> None:
    attempts, _ = waits(by_httpx, busy + path, backoff=AT_ONCE)
    assert attempts == 2


def test_a_function_sees_the_exception_and_the_attempt_and_has_the_last_word(busy: str) -> None:
    seen: list[tuple[int, int]] = []

    def wait(error: Exception, attempt: int) -> float | None:
        assert isinstance(error, httpx.HTTPStatusError)
        seen.append((error.response.status_code, attempt))
        return 0.0

    attempts, _ = waits(by_httpx, busy + "/429/seconds/600/", backoff=wait)
    assert attempts == 2
    assert seen == [(429, 1)]


def test_where_the_function_says_nothing_the_server_is_heard(busy: str) -> None:
    attempts, seconds = waits(by_httpx, busy + "/429/seconds/1/", backoff=lambda *_: None)
    assert attempts == 2
    assert seconds >= 1


def fails(_: int) -> None:
    raise LookupError


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_no_time_at_all_is_one_sentence(seconds: float) -> None:
    outcomes = fanout(fails, [1], retries=1, backoff=lambda *_: seconds)
    assert isinstance(next(outcomes).exception, LookupError)
    refusal = rf"^backoff returned {seconds} for LookupError\(\), which is not a number of "
    with pytest.raises(ValueError, match=refusal):
        next(outcomes)


def test_a_backoff_that_is_none_is_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"^backoff=0\.1 is neither a Backoff nor a function of "):
        fanout(fails, [1], backoff=0.1)
