"""Flask with the GIL's metrics, served by waitress.

    python examples/metrics_flask.py --port 8000
    curl -i http://127.0.0.1:8000/pages/1     # with a header: Server-Timing: gil;dur=5.132
    curl http://127.0.0.1:8000/metrics        # python_gil_wait_seconds_total, ... by thread

The thread "report-builder" computes without pause, so that requests wait for the GIL.
"""

import argparse
import logging
import socket
import sys
import threading
from pathlib import Path

try:
    from flask import Flask, Response
    from prometheus_client import REGISTRY, generate_latest
    from waitress import serve
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install flask prometheus_client waitress")

from ungil.metrics.prometheus import GilCollector, RequestHistograms
from ungil.metrics.wsgi import GilMiddleware

app = Flask(__name__)


@app.get("/pages/<int:number>")
def page(number: int) -> str:
    """A page that is read from a file, so that the GIL is let go of and asked for again."""
    return f"page {number}: {len(Path(__file__).read_bytes())} bytes\n"


@app.get("/metrics")
def metrics() -> Response:
    """What Prometheus scrapes."""
    return Response(generate_latest(), mimetype="text/plain")


REGISTRY.register(GilCollector(threads={"workers": "waitress-*", "reports": "report-*"}))
app.wsgi_app = GilMiddleware(  # type: ignore[method-assign]
    app.wsgi_app, observe=RequestHistograms(), log_above_ms=50
)


def build_reports() -> None:
    """Computes in pure Python for ever."""
    while True:
        sum(number * number for number in range(100_000))


def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(description="Flask with the GIL's metrics.")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    port: int = parser.parse_args().port
    logging.basicConfig()
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    threading.Thread(target=build_reports, name="report-builder", daemon=True).start()
    listening = socket.create_server(("127.0.0.1", port))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    serve(app, sockets=[listening], threads=4, _quiet=True)


if __name__ == "__main__":
    main()
