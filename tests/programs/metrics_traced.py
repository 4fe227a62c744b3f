"""A server with metrics beside a thread that computes, asked 40 times: KIND is "wsgi" or "asgi".

Prints JSON when all threads but the main one have ended: the counters of the process's other
threads as a scrape tells them, the sum of what its requests waited, and for each request (or for
each step of one that wants the GIL back) its thread and when it began and ended, in nanoseconds of
CLOCK_MONOTONIC.
"""

import asyncio
import http.client
import json
import os
import sys
import threading
import time

from prometheus_client import REGISTRY

from ungil.metrics import asgi, wsgi
from ungil.metrics.prometheus import GilCollector

kind = sys.argv[1]
REQUESTS = 40
REGISTRY.register(GilCollector())
costs, spans = [], []
over = False


def compute():
    while not over:
        sum(range(10_000))


def let_go():
    """Lets go of the GIL, long enough for the thread that computes to take it, three times."""
    for _ in range(3):
        time.sleep(0.001)


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(REQUESTS):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"x"
    connection.close()


def noted(function, *arguments):
    began = time.monotonic_ns()
    result = function(*arguments)
    spans.append((threading.get_native_id(), began, time.monotonic_ns()))
    return result


def serve_wsgi():
    import waitress

    def app(environ, start_response):
        let_go()
        start_response("200 OK", [("Content-Length", "1")])
        yield b"x"
        let_go()

    measured = wsgi.GilMiddleware(app, observe=costs.append)

    def whole(environ, start_response):
        body = measured(environ, start_response)
        parts = list(body)
        body.close()
        return parts

    def outermost(environ, start_response):
        return noted(whole, environ, start_response)

    server = waitress.create_server(outermost, host="127.0.0.1", port=0, threads=2)
    loop = threading.Thread(target=server.run)
    loop.start()
    ask(server.effective_port)
    server.close()
    loop.join()
    # Its workers may not be done with the last answer yet, and they are daemons.
    server.task_dispatcher.shutdown(timeout=60)
    return loop


def serve_asgi():
    import uvicorn

    async def app(scope, receive, send):
        for _ in range(3):
            noted(let_go)
            await asyncio.sleep(0)
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x"})

    measured = asgi.GilMiddleware(app, observe=costs.append)
    config = uvicorn.Config(measured, port=0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    # Not in the main thread, so that all its counters are final when they are read.
    loop = threading.Thread(target=server.run)
    loop.start()
    while not server.started:
        time.sleep(0.01)
    ask(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    return loop


computing = threading.Thread(target=compute)
computing.start()
loop = serve_wsgi() if kind == "wsgi" else serve_asgi()
loop.join()
over = True
computing.join()
told = {}
for metric in REGISTRY.collect():
    for sample in metric.samples:
        if sample.labels.get("threads") == "other":
            kind_of = sample.labels.get("kind", "")
            told[sample.name + kind_of] = sample.value
json.dump(
    {
        "others": told,
        "waited_ns": sum(cost.waited_ns for cost in costs),
        "requests": len(costs),
        "spans": spans,
    },
    sys.stdout,
)
sys.stdout.flush()
os._exit(0)
