"""What OpenTelemetry's own SDK collects of this process."""

from __future__ import annotations

import textwrap

from suite import run_python

PROGRAM = """
import threading, time
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from ungil.metrics import BUCKETS_S, RequestCost
from ungil.metrics.opentelemetry import RequestHistograms, instrument

reader = InMemoryMetricReader()
provider = MeterProvider([reader])

def collected():
    found = {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "ungil"
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    key = metric.name, *sorted(dict(point.attributes).items())
                    found[key] = metric, point
    return found
"""


def run(program: str) -> None:
    """Run `program`, which asserts what is to be true."""
    done = run_python("-W", "error", "-c", PROGRAM + textwrap.dedent(program))
    assert (done.returncode, done.stderr) == (0, "")


def test_counters_come_by_group_of_threads_and_never_fall() -> None:
    run("""
        instrument({"workers": "worker-*"}, meter_provider=provider)
        threads = [threading.Thread(target=time.sleep, args=(0,), name=f"worker-{it}")
                   for it in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first, second = collected(), collected()
        workers = ("cpython.gil.threads", "workers")
        for name in ("waits", "wait.time", "holds", "hold.time", "drop_requests"):
            metric, point = first[f"cpython.gil.{name}", workers]
            assert metric.data.is_monotonic, name
            assert point.value <= second[f"cpython.gil.{name}", workers][1].value, name
        assert first["cpython.gil.hold.time", workers][0].unit == "s"
        assert first["cpython.gil.holds", workers][1].value >= 3
        kind = ("cpython.gil.release.kind", "voluntary")
        assert first["cpython.gil.releases", kind, workers][1].value >= 3
        other = ("cpython.gil.threads", "other")
        assert first["cpython.gil.thread.count", other][1].value == 1
        assert not first["cpython.gil.thread.count", other][0].data.is_monotonic
        provider.shutdown()
    """)


def test_requests_become_histograms_by_the_conventions_attributes() -> None:
    run("""
        observe = RequestHistograms(meter_provider=provider)
        observe(RequestCost("GET", "/things/{id}", 1, 5_000_000, 20_000, 9_000_000))
        observe(RequestCost("other", "unknown", 0, 0, 20_000, 9_000_000))
        found = collected()
        known = ("http.request.method", "GET"), ("http.route", "/things/{id}")
        metric, point = found["http.server.request.gil.wait", *known]
        assert (metric.unit, point.count, point.sum) == ("s", 1, 0.005)
        assert tuple(point.explicit_bounds) == BUCKETS_S
        _, point = found["http.server.request.gil.hold", ("http.request.method", "_OTHER")]
        assert point.sum == 0.00002
        provider.shutdown()
    """)
