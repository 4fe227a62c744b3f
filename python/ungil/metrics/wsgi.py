"""WSGI middleware: what the GIL cost each request.

    app.wsgi_app = GilMiddleware(app.wsgi_app, observe=RequestHistograms(), log_above_ms=50)

A thread runs one request at a time, so the request's cost is what its thread did from the call of
the application to the end of its body.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from threading import get_ident
from time import monotonic_ns
from typing import Any

from ungil import _native
from ungil.metrics._installed import install
from ungil.metrics._request import ROUTE_KEY, UNKNOWN_ROUTE, RequestCost, Told, server_timing

__all__ = ["GilMiddleware"]


class GilMiddleware:
    """Measures each request of a WSGI application."""

    def __init__(
        self,
        app: Callable[..., Any],
        *,
        observe: Callable[[RequestCost], object] | None = None,
        server_timing: bool = True,
        log_above_ms: float | None = None,
    ) -> None:
        """Measure the requests of `app`.

        `observe` is called with the cost of each request when its body has ended: the
        `RequestHistograms` of `ungil.metrics.prometheus` or `ungil.metrics.opentelemetry`, or a
        function of yours. `server_timing` adds the header `Server-Timing: gil;dur=1.234` to each
        response: the milliseconds that it had waited when it sent its headers. `log_above_ms`
        writes a line to the logger `ungil.metrics` for a request that waited longer.

        Raises HookError where the GIL cannot be counted, ValueError for a negative `log_above_ms`.
        """
        install()
        self._app = app
        self._told = Told(observe, server_timing, log_above_ms)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Run the application for one request."""
        try:
            request = _Request(environ, self._told)
        except RuntimeError:
            # More threads than can be counted: the request matters more.
            return self._app(environ, start_response)
        try:
            body = self._app(environ, request.starting(start_response))
        except BaseException:
            request.end()
            raise
        wrapper = environ.get("wsgi.file_wrapper")
        if isinstance(wrapper, type) and isinstance(body, wrapper):
            # The server sends the file itself, if it is given this very object.
            request.end()
            return body
        make: Callable[[Iterable[bytes], _Request], _Body] = _Body
        has_length = hasattr(body, "__len__")
        if has_length:
            make = _SizedBody
        return make(body, request)


class _Request:
    """One request, from its beginning on."""

    __slots__ = ("_before", "_began_ns", "_environ", "_route", "_thread", "_told")

    def __init__(self, environ: dict[str, Any], told: Told) -> None:
        self._environ = environ
        self._told = told
        self._route: str | None = None
        self._thread = get_ident()
        self._began_ns = monotonic_ns()
        self._before = _native.gil_thread_waits()

    def starting(self, start_response: Callable[..., Any]) -> Callable[..., Any]:
        """A `start_response` that adds the header."""

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            # Flask forgets it before the body is over.
            self._route = _route(self._environ)
            if self._told.server_timing and get_ident() == self._thread:
                waited_ns = _native.gil_thread_waits()[1] - self._before[1]
                headers = [*headers, ("Server-Timing", server_timing(waited_ns))]
            return start_response(status, headers, *exc_info)

        return start

    def end(self) -> None:
        """The request is over."""
        if get_ident() != self._thread:
            return  # Its beginning and its end belong to different counters.
        waits, waited_ns, held_ns, *_ = _native.gil_thread_waits()
        before = self._before
        self._told.end(
            self._environ.get("REQUEST_METHOD", ""),
            self._route or _route(self._environ) or UNKNOWN_ROUTE,
            waits - before[0],
            waited_ns - before[1],
            held_ns - before[2],
            monotonic_ns() - self._began_ns,
        )


class _Body:
    """The body of a response: the server iterates over the application's own, and closes this."""

    __slots__ = ("_body", "_request")

    def __init__(self, body: Iterable[bytes], request: _Request) -> None:
        self._body = body
        self._request: _Request | None = request

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        """Close the application's body, as servers do however it ended."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            request, self._request = self._request, None
            if request is not None:
                request.end()


class _SizedBody(_Body):
    """A body whose number of parts the server can ask for, to tell the length of one part."""

    __slots__ = ()

    def __len__(self) -> int:
        assert isinstance(self._body, Sized)
        return len(self._body)


def _route(environ: dict[str, Any]) -> str | None:
    """The template of the route that a request has taken, if that is known."""
    route = environ.get(ROUTE_KEY)
    if route is None:
        # Flask's request, which its library leaves there.
        rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
        route = getattr(rule, "rule", None)
    return None if route is None else str(route)
