"""What the GIL cost one request, and what is done with that: a header, an observer, a log line."""

import logging
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger("ungil.metrics")

BUCKETS_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
)  # fmt: skip
"""Upper bounds of the histograms of requests, in seconds: a wait for the GIL takes from 0.1 ms to
some switch intervals (5 ms) for each thread that computes"""

UNKNOWN_ROUTE = "unknown"
ROUTE_KEY = "ungil.route"
"""Where an application may put the route of a request itself: in `environ`, or in `scope`."""

# What clients send as a method is anything.
_METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
)


class RequestCost(NamedTuple):
    """What the GIL cost one request."""

    method: str
    """GET, POST and so on; "other" for a method that HTTP does not have"""
    route: str
    """the template that the framework chose, as `/users/{id}`; "unknown" if it chose none"""
    waits: int
    """how often the request's thread asked for the GIL and did not get it at once"""
    waited_ns: int
    """how long that took"""
    held_ns: int
    """how long the request held the GIL"""
    wall_ns: int
    """how long the request took"""


class Told:
    """What a middleware was told to do with the cost of each request."""

    __slots__ = ("_log_above_ns", "_observe", "server_timing")

    def __init__(
        self,
        observe: Callable[[RequestCost], object] | None,
        server_timing: bool,
        log_above_ms: float | None,
    ) -> None:
        """Keep it. Raises ValueError for a threshold below zero."""
        if log_above_ms is not None and not log_above_ms >= 0:
            raise ValueError(f"log_above_ms is a number of milliseconds, not {log_above_ms}")
        self._observe = observe
        self._log_above_ns = None if log_above_ms is None else log_above_ms * 1e6
        self.server_timing = server_timing

    def end(
        self, method: str, route: str, waits: int, waited_ns: int, held_ns: int, wall_ns: int
    ) -> None:
        """Do it. The request goes on whatever the observer raises."""
        if method not in _METHODS:
            method = "other"
        if self._observe is not None:
            cost = RequestCost(method, route, waits, waited_ns, held_ns, wall_ns)
            try:
                self._observe(cost)
            except Exception:
                logger.exception("the observer of requests failed for %s", cost)
        if self._log_above_ns is not None and waited_ns > self._log_above_ns:
            logger.warning(
                "%s %s waited %.1f ms for the GIL in %d waits, of %.1f ms; it held it %.1f ms",
                method,
                route,
                waited_ns / 1e6,
                waits,
                wall_ns / 1e6,
                held_ns / 1e6,
            )


def server_timing(waited_ns: int) -> str:
    """The value of the header that browsers show: milliseconds."""
    return f"gil;dur={waited_ns / 1e6:.3f}"
