"""ASGI middleware: what the GIL cost each request.

    app.add_middleware(GilMiddleware, observe=RequestHistograms(), log_above_ms=50)

An event loop runs many requests in one thread. A request is charged for what that thread did in the
request's own coroutine, not for what it did in others meanwhile. Work that a request hands to other
threads or tasks is charged to it if that is `part_of_request`.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar
from functools import wraps
from inspect import iscoroutinefunction
from time import monotonic_ns
from typing import Any, ParamSpec, TypeVar, cast

from ungil import _native
from ungil.metrics._installed import install
from ungil.metrics._request import ROUTE_KEY, UNKNOWN_ROUTE, RequestCost, Told, server_timing
from ungil.metrics._steps import Charges, Steps

__all__ = ["GilMiddleware", "part_of_request"]

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_P = ParamSpec("_P")
_T = TypeVar("_T")

_charges: ContextVar[Charges | None] = ContextVar("ungil_charges", default=None)


class GilMiddleware:
    """Measures each HTTP request of an ASGI application; websockets and lifespan pass through."""

    def __init__(
        self,
        app: Callable[[_Scope, _Receive, _Send], Awaitable[None]],
        *,
        observe: Callable[[RequestCost], object] | None = None,
        server_timing: bool = True,
        log_above_ms: float | None = None,
    ) -> None:
        """Measure the requests of `app`.

        `observe` is called with the cost of each request when its response has been sent: the
        `RequestHistograms` of `ungil.metrics.prometheus` or `ungil.metrics.opentelemetry`, or a
        function of yours. `server_timing` adds the header `Server-Timing: gil;dur=1.234` to each
        response: the milliseconds that it had waited when it sent its headers. `log_above_ms`
        writes a line to the logger `ungil.metrics` for a request that waited longer.

        Raises HookError where the GIL cannot be counted, ValueError for a negative `log_above_ms`.
        """
        install()
        self._app = app
        self._told = Told(observe, server_timing, log_above_ms)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Run the application for one request, websocket, or life."""
        if scope["type"] != "http" or not _is_counted():
            await self._app(scope, receive, send)
            return
        request = _Request(scope, send, self._told)
        token = _charges.set(request.charges)
        try:
            await Steps(self._app(scope, receive, request.send), request.charges)
        finally:
            _charges.reset(token)
            request.end()


class _Request:
    """One request, from its beginning on."""

    __slots__ = ("_began_ns", "_is_over", "_scope", "_send", "_told", "charges")

    def __init__(self, scope: _Scope, send: _Send, told: Told) -> None:
        self._scope = scope
        self._send = send
        self._told = told
        self._is_over = False
        self._began_ns = monotonic_ns()
        self.charges = Charges()

    async def send(self, message: _Message) -> None:
        """Send a message of the application on, the first with one header more."""
        kind = message["type"]
        if kind == "http.response.start" and self._told.server_timing:
            value = server_timing(self.charges.so_far()[1]).encode()
            headers = [*message.get("headers", ()), (b"server-timing", value)]
            message = {**message, "headers": headers}
        await self._send(message)
        if kind == "http.response.body" and not message.get("more_body", False):
            # Tasks that a framework runs in the background, after the response, are not part of it.
            self.end()

    def end(self) -> None:
        """The response has been sent, or there will be none."""
        if self._is_over:
            return
        self._is_over = True
        # It had come in already when the loop waited before its first step.
        wall_ns = monotonic_ns() - self._began_ns + self.charges.early_ns
        self._told.end(
            self._scope.get("method", ""), _route(self._scope), *self.charges.so_far(), wall_ns
        )


def part_of_request(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Charge a request for what `function` does in another thread, or in another task.

        @app.get("/report")
        @part_of_request
        def report() -> str: ...

    FastAPI and Starlette run a `def` in a thread of a pool, and an `async def` below a
    `BaseHTTPMiddleware` in a task of its own. Where there is no request, or where the function
    runs in a step of the request anyway, nothing changes.
    """
    if iscoroutinefunction(function):

        @wraps(function)
        async def part_async(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            part = _part(reach=2)
            if part is None:
                return await function(*args, **kwargs)
            token = _charges.set(part)
            try:
                return await Steps(function(*args, **kwargs), part)
            finally:
                _charges.reset(token)

        return cast("Callable[_P, _T]", part_async)

    @wraps(function)
    def part_of(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        part = _part(reach=1)
        if part is None:
            return function(*args, **kwargs)
        token = _charges.set(part)
        part.begin_step()
        try:
            return function(*args, **kwargs)
        finally:
            part.end_step()
            _charges.reset(token)

    return part_of


def _part(reach: int) -> Charges | None:
    """Charges for what begins here, or None if nobody is charged, or is charged anyway."""
    charges = _charges.get()
    if charges is None or charges.is_in_step() or not _is_counted():
        return None
    return charges.part(reach)


def _is_counted() -> bool:
    """Whether this thread is: there may be more threads than can be."""
    try:
        _native.gil_thread_waits()
    except RuntimeError:
        return False
    return True


def _route(scope: Mapping[str, Any]) -> str:
    """The template of the route that a request has taken."""
    route = scope.get(ROUTE_KEY)
    if route is None:
        # FastAPI's route does not know the prefix with which its router was included.
        context = scope.get("fastapi", {}).get("effective_route_context")
        route = getattr(context, "path_format", None)
    if route is None:
        route = getattr(scope.get("route"), "path", None)
    return UNKNOWN_ROUTE if route is None else str(route)
