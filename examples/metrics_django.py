"""Django with the GIL's metrics, in one file, served by waitress.

    python examples/metrics_django.py --port 8000
    curl -i http://127.0.0.1:8000/pages/1     # with a header: Server-Timing: gil;dur=5.132
    curl http://127.0.0.1:8000/metrics        # python_gil_wait_seconds_total, ... by thread

The thread "report-builder" computes without pause, so that requests wait for the GIL.
"""

import argparse
import logging
import threading
from pathlib import Path

import waitress
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from prometheus_client import REGISTRY, generate_latest

from ungil.metrics.prometheus import GilCollector, RequestHistograms
from ungil.metrics.wsgi import GilMiddleware


def page(_: HttpRequest, number: int) -> HttpResponse:
    """A page that is read from a file, so that the GIL is let go of and asked for again."""
    return HttpResponse(f"page {number}: {len(Path(__file__).read_bytes())} bytes\n")


def metrics(_: HttpRequest) -> HttpResponse:
    """What Prometheus scrapes."""
    return HttpResponse(generate_latest(), content_type="text/plain")


urlpatterns = [path("pages/<int:number>", page), path("metrics", metrics)]

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=["ungil.metrics.django.route_middleware"],
)
REGISTRY.register(GilCollector(threads={"workers": "waitress-*", "reports": "report-*"}))
application = GilMiddleware(get_wsgi_application(), observe=RequestHistograms(), log_above_ms=50)


def build_reports() -> None:
    """Computes in pure Python for ever."""
    while True:
        sum(number * number for number in range(100_000))


def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(description="Django with the GIL's metrics.")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    port: int = parser.parse_args().port
    logging.basicConfig()
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = waitress.create_server(application, host="127.0.0.1", port=port, threads=4)
    threading.Thread(target=build_reports, name="report-builder", daemon=True).start()
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


if __name__ == "__main__":
    main()
