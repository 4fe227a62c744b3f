"""The GIL's counters for `prometheus_client`.

    from prometheus_client import REGISTRY

    REGISTRY.register(GilCollector(threads={"workers": "ThreadPoolExecutor-*"}))
    app.wsgi_app = GilMiddleware(app.wsgi_app, observe=RequestHistograms())

[metrics.md](metrics.md) says what each metric means, and how to find out which threads starve.
"""

from collections.abc import Iterator, Mapping, Sequence

from ungil import _native
from ungil.metrics._process import ProcessCounters
from ungil.metrics._request import BUCKETS_S, RequestCost

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Histogram
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "ungil.metrics.prometheus needs prometheus_client: pip install 'ungil[prometheus]'",
        name=missing.name,
    ) from missing

__all__ = ["GilCollector", "RequestHistograms"]

_COUNTERS = {
    "waits": ("python_gil_waits", "Waits for the GIL that have ended", 1),
    "waited_ns": ("python_gil_wait_seconds", "Time that threads waited for the GIL", 1e9),
    "holds": ("python_gil_holds", "Holds of the GIL that have ended", 1),
    "held_ns": ("python_gil_hold_seconds", "Time that threads held the GIL", 1e9),
    "drop_requests": (
        "python_gil_drop_requests",
        "Times that a thread waited a switch interval and asked the holder to release the GIL",
        1,
    ),
}
_GAUGES = {
    "running": ("python_gil_threads", "Running threads that are counted"),
    "waiting": ("python_gil_waiting_threads", "Threads that wait for the GIL at this moment"),
}


class GilCollector(Collector):
    """The counters of this process, to be registered: `REGISTRY.register(GilCollector())`.

    It costs nothing until it is read. All values belong to one moment, and no counter falls when a
    thread ends.
    """

    def __init__(self, threads: Mapping[str, str] | None = None) -> None:
        """Count this process, and the children that it forks, from now on.

        `threads` names up to eight groups of threads, each with a pattern (`fnmatch`) of
        `threading.Thread.name`; the first pattern that matches decides, and threads that match none
        are in the group "other". Without it there are "main", the main thread, and "other". The
        group is the label `threads` of every metric, and the groups add up to the process.

        Raises HookError where the GIL cannot be counted, UsageError for more groups or for others
        than the process has already.
        """
        self._counters = ProcessCounters(threads)

    def describe(self) -> Iterator[Metric]:
        """The names of the metrics, for the registry."""
        for name, text, _ in _COUNTERS.values():
            yield CounterMetricFamily(name, text, labels=["threads"])
        for name, text in _GAUGES.values():
            yield GaugeMetricFamily(name, text, labels=["threads"])
        yield _releases()
        yield _uncounted()

    def collect(self) -> Iterator[Metric]:
        """The metrics, for a scrape."""
        groups = self._counters.read()
        for field, (name, text, unit) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=["threads"])
            for group in groups:
                counter.add_metric([group.threads], getattr(group, field) / unit)
            yield counter
        for field, (name, text) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, text, labels=["threads"])
            for group in groups:
                gauge.add_metric([group.threads], getattr(group, field))
            yield gauge
        releases = _releases()
        for group in groups:
            releases.add_metric([group.threads, "voluntary"], group.voluntary)
            releases.add_metric([group.threads, "forced"], group.forced)
        yield releases
        uncounted = _uncounted()
        uncounted.add_metric([], _native.gil_uncounted_threads())
        yield uncounted


def _releases() -> CounterMetricFamily:
    text = "Releases of the GIL: voluntary, or forced because another thread asked for it"
    return CounterMetricFamily("python_gil_releases", text, labels=["threads", "kind"])


def _uncounted() -> CounterMetricFamily:
    return CounterMetricFamily(
        "python_gil_uncounted_threads",
        "Threads that are not counted, because there was no room for them",
        labels=[],
    )


class RequestHistograms:
    """Histograms of what the GIL cost each request, by method and route: for `observe=`.

    They are `python_gil_request_wait_seconds` and `python_gil_request_hold_seconds`.
    """

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, *, buckets: Sequence[float] = BUCKETS_S
    ) -> None:
        """Register both; `buckets` are upper bounds in seconds, in ascending order."""
        labels = ("method", "route")
        self._waited = Histogram(
            "python_gil_request_wait_seconds",
            "Time that a request waited for the GIL",
            labels,
            registry=registry,
            buckets=buckets,
        )
        self._held = Histogram(
            "python_gil_request_hold_seconds",
            "Time that a request held the GIL",
            labels,
            registry=registry,
            buckets=buckets,
        )
        # Finding a child by its labels takes longer than observing.
        self._of: dict[tuple[str, str], tuple[Histogram, Histogram]] = {}

    def __call__(self, cost: RequestCost) -> None:
        """Add a request."""
        key = (cost.method, cost.route)
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = (self._waited.labels(*key), self._held.labels(*key))
        found[0].observe(cost.waited_ns / 1e9)
        found[1].observe(cost.held_ns / 1e9)
