"""Flask behind waitress, with or without the GIL's metrics; or parts of them, alone.

The first argument is "server", then one of LEVELS: it prints its port, answers `/` and `/metrics`,
and at `/cpu` the CPU seconds that the process has used; it ends with its standard input.
With "parts" it prints how long a scrape and the middleware of a request take, in nanoseconds.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

LEVELS = ["nothing", "counters", "middleware"]


def serve(level: str) -> None:
    """Serve until standard input ends."""
    import flask
    import waitress

    app = flask.Flask("metered")
    registry = CollectorRegistry()

    @app.get("/")
    def index() -> flask.Response:
        # Lets go of the GIL, as a request to a database or a file does.
        Path(os.devnull).read_bytes()
        return flask.jsonify(number=42, text="small")

    @app.get("/metrics")
    def metrics() -> bytes:
        return generate_latest(registry)

    @app.get("/cpu")
    def cpu() -> dict[str, float]:
        return {"cpu_s": time.process_time()}

    if level != "nothing":
        from ungil.metrics.prometheus import GilCollector, RequestHistograms
        from ungil.metrics.wsgi import GilMiddleware

        registry.register(GilCollector({"workers": "waitress-*"}))
        if level == "middleware":
            observe = RequestHistograms(registry)
            app.wsgi_app = GilMiddleware(app.wsgi_app, observe=observe)  # type: ignore[method-assign]
    server = waitress.create_server(app, host="127.0.0.1", port=0, threads=4)
    threading.Thread(target=server.run, daemon=True).start()
    print(json.dumps({"port": server.effective_port}), flush=True)
    sys.stdin.read()
    os._exit(0)


def plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The least of a WSGI application."""
    start_response("200 OK", [])
    return (b"x",)


async def steps(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application of four steps."""
    for _ in range(3):
        await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


def parts() -> None:
    """Measure the parts."""
    from ungil.metrics.asgi import GilMiddleware as Asgi
    from ungil.metrics.prometheus import GilCollector, RequestHistograms
    from ungil.metrics.wsgi import GilMiddleware as Wsgi

    registry = CollectorRegistry()
    registry.register(GilCollector({"workers": "worker-*"}))
    wait = threading.Event()
    for number in range(16):
        threading.Thread(target=wait.wait, name=f"worker-{number}", daemon=True).start()
    observe = RequestHistograms(CollectorRegistry())

    def request(app: Any) -> Callable[[], None]:
        def run() -> None:
            body = app({"REQUEST_METHOD": "GET", "ungil.route": "/"}, lambda *_: None)
            for _ in body:
                pass
            getattr(body, "close", int)()

        return run

    async def send(_: Any) -> None: ...

    def request_async(app: Any) -> Callable[[], None]:
        def run() -> None:
            scope = {"type": "http", "method": "GET", "ungil.route": "/"}
            coroutine = app(scope, None, send)
            try:
                while True:
                    coroutine.send(None)
            except StopIteration:
                pass

        return run

    measured = {
        "scrape": (lambda: generate_latest(registry), 200),
        "wsgi bare": (request(plain), 20_000),
        "wsgi": (request(Wsgi(plain)), 20_000),
        "wsgi histograms": (request(Wsgi(plain, observe=observe)), 20_000),
        "asgi bare": (request_async(steps), 20_000),
        "asgi": (request_async(Asgi(steps)), 20_000),
        "asgi histograms": (request_async(Asgi(steps, observe=observe)), 20_000),
    }
    print(json.dumps({name: ns_of(*it) for name, it in measured.items()}), flush=True)


def ns_of(function: Callable[[], object], times: int) -> float:
    """CPU time of one call, in nanoseconds."""
    began = time.thread_time_ns()
    for _ in range(times):
        function()
    return (time.thread_time_ns() - began) / times


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "server" else parts()
