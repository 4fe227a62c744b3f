"""Django with the GIL's metrics, in one file, served by waitress.

    python examples/metrics_django.py --port 8000
    curl -i http://127.0.0.1:8000/pages/1     # with a header: Server-Timing: gil;dur=5.132
    curl http://127.0.0.1:8000/metrics        # python_gil_wait_seconds_total, ... by thread

The thread "report-builder" computes without pause, so that requests wait for the GIL.
"""

import argparse
import logging
import os
import socket
import sys
import threading
from pathlib import Path

try:
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpRequest, HttpResponse
    from django.urls import path
    from prometheus_client import REGISTRY, generate_latest
    from waitress import serve
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install django prometheus_client waitress")

from ungil.metrics.prometheus import GilCollector, RequestHistograms
from ungil.metrics.wsgi import GilMiddleware


def page(_: HttpRequest, number: int) -> HttpResponse:
    """A page that is read from a file, so that the GIL is let go of and asked for again."""
    return HttpResponse(f"page {number}: {len(Path(__file__).read_bytes())} bytes\n".encode())


def metrics(_: HttpRequest) -> HttpResponse:
    """What Prometheus scrapes."""
    return HttpResponse(generate_latest(), content_type="text/plain")


urlpatterns = [path("pages/<int:number>", page), path("metrics", metrics)]

# The settings: this file is their module as well.
ROOT_URLCONF = __name__
ALLOWED_HOSTS = ["127.0.0.1"]
MIDDLEWARE = ["ungil.metrics.django.route_middleware"]
os.environ["DJANGO_SETTINGS_MODULE"] = __name__

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
    threading.Thread(target=build_reports, name="report-builder", daemon=True).start()
    listening = socket.create_server(("127.0.0.1", port))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    serve(application, sockets=[listening], threads=4, _quiet=True)


if __name__ == "__main__":
    main()
