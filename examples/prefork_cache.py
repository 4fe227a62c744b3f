"""A web server of several processes (prefork) whose workers share a cache, with nothing to install.

Ordinarily each worker of such a server computes everything for itself, or asks a cache server. Here
a page that one worker computed is found by all, also after the worker that computed it was killed.

A client, in a process of its own, keeps a connection to each worker and asks all for the same
pages; then it kills one of them with SIGKILL, is served by the worker that takes its place, and
prints what it saw:

    python examples/prefork_cache.py
"""

import argparse
import hashlib
import http.client
import http.server
import os
import signal
from collections.abc import Callable
from typing import Any

from ungil import share

PAGES = ["/first", "/second", "/third"]


def compute(path: str) -> str:
    """A page that takes a while."""
    digest = path.encode()
    for _ in range(100_000):
        digest = hashlib.sha256(digest).digest()
    return f"{path} is {digest.hex()}\n"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers from the cache, and fills it."""

    protocol_version = "HTTP/1.1"  # Connections stay open.
    cache: share.dict[str, Any]

    def do_GET(self) -> None:
        """Serve a page, and say who computed it and who answers."""
        found = self.cache.get(self.path)
        if found is None:
            found = self.cache[self.path] = compute(self.path), os.getpid()
            self.cache.incr("misses")
        else:
            self.cache.incr("hits")
        page, author = found
        body = page.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Computed-By", str(author))
        self.send_header("X-Answered-By", str(os.getpid()))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The client prints enough."""


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, int]:
    """Who computed a page and who answered."""
    connection.request("GET", path)
    answer = connection.getresponse()
    if answer.status != 200 or not answer.read().startswith(path.encode()):
        raise RuntimeError(f"{path} was not served")
    return int(answer.headers["X-Computed-By"]), int(answer.headers["X-Answered-By"])


def request_pages(port: int, workers: int) -> None:
    """The client. A worker serves one connection at a time, so each connection has its own."""
    # The first request tells which worker it is.
    connections: dict[int | None, http.client.HTTPConnection] = {}
    for _ in range(workers):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        _, worker = ask(connection, PAGES[0])
        connections[worker] = connection
    for path in PAGES[1:]:
        seen = [ask(connection, path) for connection in connections.values()]
        others = sum(author != worker for author, worker in seen)
        print(f"{path}: asked {len(seen)} workers, {others} had it from another one", flush=True)

    victim, connection = next(iter(connections.items()))
    assert victim
    os.kill(victim, signal.SIGKILL)
    connection.close()
    connection = connections[None] = http.client.HTTPConnection("127.0.0.1", port)
    for path in PAGES:
        author, worker = ask(connection, path)
        if author == worker or worker in connections:
            raise RuntimeError(f"{path} was computed again")
    print(f"a worker was killed; its successor had all {len(PAGES)} pages at once", flush=True)
    for connection in connections.values():
        connection.close()


def start(serve: Callable[..., None], *arguments: object) -> int:
    """Fork a process for `serve`; its ID."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            serve(*arguments)
            status = 0
        finally:
            os._exit(status)
    return child


def main() -> None:
    """The parent: keeps the number of workers until the client is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    options = parser.parse_args()

    heap = share.Heap(max_size=1 << 26)
    Handler.cache = heap.root
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    workers = {start(server.serve_forever) for _ in range(options.workers)}
    client = start(request_pages, server.server_port, options.workers)
    while True:
        ended, status = os.wait()
        if ended == client:
            break
        workers.remove(ended)
        workers.add(start(server.serve_forever))
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
        os.waitpid(worker, 0)
    server.server_close()
    if status != 0:
        raise SystemExit("the client failed")
    print(f"{Handler.cache['misses']} misses, {Handler.cache['hits']} hits")


if __name__ == "__main__":
    main()
