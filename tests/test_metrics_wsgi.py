"""The WSGI middleware: what it measures, and that a response passes through it as it is."""

from __future__ import annotations

import ctypes
import io
import logging
import re
import wsgiref.util
import wsgiref.validate
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from ungil.metrics import RequestCost
from ungil.metrics.wsgi import GilMiddleware

Start = Callable[..., Any]
keep = ctypes.PyDLL(None)  # calls that keep the GIL


class Request:
    """One request to an application, as a server makes it."""

    def __init__(self, app: Any, **environ: Any) -> None:
        self.environ: dict[str, Any] = {
            "PATH_INFO": "/secret/1",
            "QUERY_STRING": "",
            "SCRIPT_NAME": "",
            **environ,
        }
        wsgiref.util.setup_testing_defaults(self.environ)
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.body = app(self.environ, self._start)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self.status, self.headers = status, headers
        return lambda part: None  # type: ignore[misc]

    def read(self) -> bytes:
        """The whole body, closed at its end."""
        try:
            return b"".join(self.body)
        finally:
            close = getattr(self.body, "close", None)
            if close is not None:
                close()


def plain(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"one part"]


def test_the_body_is_part_of_the_request_and_its_header_tells_what_came_before() -> None:
    costs: list[RequestCost] = []

    def app(environ: dict[str, Any], start_response: Start) -> Iterator[bytes]:
        environ["ungil.route"] = "/things/{id}"
        start_response("200 OK", [])
        for _ in range(2):
            keep.usleep(10_000)
            yield b"x"

    request = Request(GilMiddleware(app, observe=costs.append), REQUEST_METHOD="PUT")
    assert request.read() == b"xx"
    assert request.headers == [("Server-Timing", "gil;dur=0.000")]
    (cost,) = costs
    assert (cost.method, cost.route, cost.waits) == ("PUT", "/things/{id}", 0)
    assert cost.held_ns >= 20_000_000
    assert cost.wall_ns >= cost.held_ns


def test_a_body_of_one_part_can_still_be_seen_to_be_one() -> None:
    request = Request(GilMiddleware(plain))
    assert len(request.body) == 1
    with pytest.raises(TypeError):
        len(Request(GilMiddleware(lambda *_: iter([b"x"]))).body)


def test_an_application_stays_a_right_one() -> None:
    request = Request(wsgiref.validate.validator(GilMiddleware(wsgiref.validate.validator(plain))))
    assert request.read() == b"one part"
    assert dict(request.headers)["Content-Type"] == "text/plain"


def test_a_file_goes_to_the_server_as_it_is() -> None:
    costs: list[RequestCost] = []

    def app(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        start_response("200 OK", [])
        return environ["wsgi.file_wrapper"](io.BytesIO(b"content"))

    wrapper = wsgiref.util.FileWrapper
    request = Request(GilMiddleware(app, observe=costs.append), **{"wsgi.file_wrapper": wrapper})
    assert type(request.body) is wrapper
    assert len(costs) == 1


@pytest.mark.parametrize("when", ["called", "iterated", "closed"])
def test_an_exception_passes_and_the_request_is_measured(when: str) -> None:
    costs: list[RequestCost] = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            if when == "iterated":
                raise KeyError(when)
            yield b""

        def close(self) -> None:
            if when == "closed":
                raise KeyError(when)

    def app(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        if when == "called":
            raise KeyError(when)
        return Body()

    with pytest.raises(KeyError, match=when):
        Request(GilMiddleware(app, observe=costs.append)).read()
    assert [cost.route for cost in costs] == ["unknown"]


def test_what_the_observer_raises_is_logged_and_the_request_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def observe(_: RequestCost) -> None:
        raise ValueError("no space")

    assert Request(GilMiddleware(plain, observe=observe)).read() == b"one part"
    assert "the observer of requests failed" in caplog.text
    assert "ValueError: no space" in caplog.text


def test_an_invented_method_becomes_no_label() -> None:
    costs: list[RequestCost] = []
    Request(GilMiddleware(plain, observe=costs.append), REQUEST_METHOD="GET2").read()
    assert [cost.method for cost in costs] == ["other"]


def test_a_line_is_logged_for_a_request_that_waited_longer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from ungil.metrics._request import Told

    told = Told(None, True, 50)
    with caplog.at_level(logging.WARNING, logger="ungil.metrics"):
        told.end("GET", "/a", 3, 50_000_000, 0, 60_000_000)
        told.end("GET", "/b", 12, 73_100_000, 8_000_000, 120_400_000)
    assert caplog.messages == [
        "GET /b waited 73.1 ms for the GIL in 12 waits, of 120.4 ms; it held it 8.0 ms"
    ]


def test_no_header_and_no_line_if_nobody_wants_them(caplog: pytest.LogCaptureFixture) -> None:
    request = Request(GilMiddleware(plain, server_timing=False))
    assert request.read() == b"one part"
    assert request.headers == [("Content-Type", "text/plain")]
    assert not caplog.records


def test_a_threshold_without_sense_is_refused() -> None:
    sentence = "log_above_ms is a number of milliseconds, not -1"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        GilMiddleware(plain, log_above_ms=-1)
