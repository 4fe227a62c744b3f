"""Tells the middleware which route Django chose for a request.

    MIDDLEWARE = ["ungil.metrics.django.route_middleware", ...]

Django's handler does not pass the route on, so `ungil.metrics.wsgi` and `ungil.metrics.asgi`, which
wrap all of Django, could not name it.
"""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from ungil.metrics._request import ROUTE_KEY

__all__ = ["route_middleware"]


def route_middleware(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Django middleware that notes `request.resolver_match.route` for the GIL's middleware.

    Its place in MIDDLEWARE does not matter.
    """
    if iscoroutinefunction(get_response):

        async def note_async(request: Any) -> Any:
            try:
                return await get_response(request)
            finally:
                _note(request)

        return note_async

    def note(request: Any) -> Any:
        try:
            return get_response(request)
        finally:
            _note(request)

    return note


def _note(request: Any) -> None:
    match = getattr(request, "resolver_match", None)
    if match is not None:
        # `META` is the environ itself under WSGI, and a dictionary made of `scope` under ASGI.
        (getattr(request, "scope", None) or request.META)[ROUTE_KEY] = f"/{match.route}"


# What Django's own decorator `sync_and_async_middleware` says of a function.
for _can in ("sync_capable", "async_capable"):
    setattr(route_middleware, _can, True)
