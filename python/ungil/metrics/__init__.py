"""What the GIL costs a service, as metrics that can stay on.

    from prometheus_client import REGISTRY
    from ungil.metrics.prometheus import GilCollector, RequestHistograms
    from ungil.metrics.wsgi import GilMiddleware

    REGISTRY.register(GilCollector(threads={"workers": "waitress-*"}))
    app.wsgi_app = GilMiddleware(app.wsgi_app, observe=RequestHistograms(), log_above_ms=50)

| module | what it has | needs |
|---|---|---|
| `prometheus` | counters of the process, histograms of requests | `ungil[prometheus]` |
| `opentelemetry` | the same | `ungil[otel]` |
| `asgi`, `wsgi` | the middleware that measures requests | nothing |
| `django` | tells the middleware the route of a request | Django |

Each of them installs `ungil.gil` in this process, and again in children that it forks.
[metrics.md](metrics.md) says what the numbers mean, what they cost, and what they cannot see.
"""

from ungil.metrics._request import BUCKETS_S, RequestCost

__all__ = ["BUCKETS_S", "RequestCost"]
