"""The GIL's counters for OpenTelemetry.

    instrument(threads={"workers": "ThreadPoolExecutor-*"})
    app.wsgi_app = GilMiddleware(app.wsgi_app, observe=RequestHistograms())

OpenTelemetry has no names for them yet; [metrics.md](metrics.md) proposes these.
"""

from collections.abc import Callable, Mapping, Sequence

from ungil.metrics._process import GroupCounters, ProcessCounters
from ungil.metrics._request import BUCKETS_S, UNKNOWN_ROUTE, RequestCost

try:
    from opentelemetry.metrics import (
        CallbackOptions,
        Histogram,
        MeterProvider,
        Observation,
        get_meter,
    )
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "ungil.metrics.opentelemetry needs opentelemetry: pip install 'ungil[otel]'",
        name=missing.name,
    ) from missing

__all__ = ["RequestHistograms", "instrument"]

THREADS = "cpython.gil.threads"
KIND = "cpython.gil.release.kind"

_Observe = Callable[[GroupCounters], list[Observation]]


def instrument(
    threads: Mapping[str, str] | None = None, *, meter_provider: MeterProvider | None = None
) -> None:
    """Report the counters of this process to `meter_provider`, or else to the global one.

    `threads` names groups of threads, as `GilCollector` of `ungil.metrics.prometheus` has it.
    Called once. Raises HookError where the GIL cannot be counted, UsageError for impossible groups.
    """
    meter = get_meter("ungil", meter_provider=meter_provider)
    counters = ProcessCounters(threads)

    def reading(observe: _Observe) -> Callable[[CallbackOptions], list[Observation]]:
        def read(_: CallbackOptions) -> list[Observation]:
            return [seen for group in counters.read() for seen in observe(group)]

        return read

    def field(name: str, unit: float = 1) -> Callable[[CallbackOptions], list[Observation]]:
        return reading(lambda it: [Observation(getattr(it, name) / unit, {THREADS: it.threads})])

    def releases(group: GroupCounters) -> list[Observation]:
        kinds = {"voluntary": group.voluntary, "forced": group.forced}
        return [
            Observation(number, {THREADS: group.threads, KIND: kind})
            for kind, number in kinds.items()
        ]

    for name, read, unit, description in [
        ("waits", field("waits"), "{wait}", "Waits for the GIL that have ended"),
        ("wait.time", field("waited_ns", 1e9), "s", "Time that threads waited for the GIL"),
        ("holds", field("holds"), "{hold}", "Holds of the GIL that have ended"),
        ("hold.time", field("held_ns", 1e9), "s", "Time that threads held the GIL"),
        ("releases", reading(releases), "{release}", "Releases of the GIL"),
        (
            "drop_requests",
            field("drop_requests"),
            "{request}",
            "Times that a thread waited a switch interval and asked the holder to release the GIL",
        ),
    ]:
        meter.create_observable_counter(f"cpython.gil.{name}", [read], unit, description)
    for name, read, description in [
        ("thread.count", field("running"), "Running threads that are counted"),
        ("thread.waiting", field("waiting"), "Threads that wait for the GIL at this moment"),
    ]:
        meter.create_observable_up_down_counter(
            f"cpython.gil.{name}", [read], "{thread}", description
        )


class RequestHistograms:
    """Histograms of what the GIL cost each request, by method and route: for `observe=`.

    They are `http.server.request.gil.wait` and `http.server.request.gil.hold`, in seconds.
    """

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        buckets: Sequence[float] = BUCKETS_S,
    ) -> None:
        """Make both; `buckets` are upper bounds in seconds, which a view may replace."""
        meter = get_meter("ungil", meter_provider=meter_provider)

        def histogram(name: str, description: str) -> Histogram:
            return meter.create_histogram(
                f"http.server.request.gil.{name}",
                "s",
                description,
                explicit_bucket_boundaries_advisory=buckets,
            )

        self._waited = histogram("wait", "Time that a request waited for the GIL")
        self._held = histogram("hold", "Time that a request held the GIL")

    def __call__(self, cost: RequestCost) -> None:
        """Add a request."""
        # The conventions have another word for other methods, and leave out an unknown route.
        method = "_OTHER" if cost.method == "other" else cost.method
        attributes = {"http.request.method": method}
        if cost.route != UNKNOWN_ROUTE:
            attributes["http.route"] = cost.route
        self._waited.record(cost.waited_ns / 1e9, attributes)
        self._held.record(cost.held_ns / 1e9, attributes)
