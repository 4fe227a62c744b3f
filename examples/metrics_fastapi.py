"""FastAPI with the GIL's metrics, served by uvicorn.

    python examples/metrics_fastapi.py --port 8000
    curl -i http://127.0.0.1:8000/pages/1     # with a header: server-timing: gil;dur=5.132
    curl http://127.0.0.1:8000/metrics        # python_gil_wait_seconds_total, ... by thread

The thread "report-builder" computes without pause, so that requests wait for the GIL.
"""

import argparse
import asyncio
import socket
import sys
import threading
from pathlib import Path

try:
    import uvicorn
    from fastapi import FastAPI, Response
    from prometheus_client import REGISTRY, generate_latest
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install fastapi prometheus_client uvicorn")

from ungil.metrics.asgi import GilMiddleware, part_of_request
from ungil.metrics.prometheus import GilCollector, RequestHistograms

app = FastAPI()
# The first one that is added is the innermost: the GIL's, so that it is in the request's own task.
app.add_middleware(GilMiddleware, observe=RequestHistograms(), log_above_ms=50)
REGISTRY.register(GilCollector(threads={"loop": "MainThread", "reports": "report-*"}))


@app.get("/pages/{number}")
async def page(number: int) -> str:
    """A page that waits for something, in the thread of the event loop."""
    await asyncio.sleep(0.001)
    return f"page {number}"


@app.get("/files/{number}")
@part_of_request
def file(number: int) -> str:
    """A page that is read from a file; FastAPI runs a `def` in another thread."""
    return f"file {number}: {len(Path(__file__).read_bytes())} bytes"


@app.get("/metrics")
async def metrics() -> Response:
    """What Prometheus scrapes."""
    return Response(generate_latest(), media_type="text/plain")


def build_reports() -> None:
    """Computes in pure Python for ever."""
    while True:
        sum(number * number for number in range(100_000))


def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(description="FastAPI with the GIL's metrics.")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    port: int = parser.parse_args().port
    threading.Thread(target=build_reports, name="report-builder", daemon=True).start()
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
