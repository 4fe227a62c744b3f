"""A FastAPI app whose workers share a cache and a rate limiter, without a server for either.

Each worker is a process, as under gunicorn or `uvicorn --workers`. What one of them has computed,
all have, for as long as `--ttl` says; and a client may ask so many times a minute, whichever worker
answers. A client asks them all for the same pages, kills one of them, asks again, and prints what
it saw.

    python examples/cache_fastapi.py
"""

import argparse
import http.client
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from ungil import share

try:
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request, Response
except ImportError as missing:
    sys.exit(f"this example needs {missing.name}: pip install fastapi uvicorn")

# So many requests of a client in so many seconds.
LIMIT = 60
PERIOD_S = 60.0

app = FastAPI()
# Set before the workers are forked, which inherit it.
heap: share.Heap
ttl_s = 60.0


def cached(key: str, compute: Callable[[], str]) -> str:
    """What was computed for a key lately, by any worker; one of them computes it if need be."""
    cache: share.dict[str, tuple[float, str]] = heap.root["cache"]
    # The clock is the same in all processes of a machine.
    expires, value = cache.get(key, (0.0, ""))
    if expires > time.monotonic():
        return value
    # Others that want it wait for the one that computes it. If that dies, the next one does.
    with heap.root["computing"]:
        expires, value = cache.get(key, (0.0, ""))
        if expires <= time.monotonic():
            value = compute()
            cache[key] = time.monotonic() + ttl_s, value
    return value


def is_allowed(client: str) -> bool:
    """Count a request of a client; whether it may be answered."""
    counts: share.dict[str, tuple[float, int]] = heap.root["clients"]
    while True:
        old: Any = counts.get(client, share.ABSENT)
        began, count = (time.monotonic(), 0) if old is share.ABSENT else old
        if time.monotonic() - began > PERIOD_S:
            began, count = time.monotonic(), 0
        if count >= LIMIT:
            return False
        # Unless another worker was quicker.
        if counts.cas(client, old, (began, count + 1)):
            return True


@app.get("/pages/{number}")
def page(number: int, request: Request, response: Response) -> str:
    """A page that takes a while; FastAPI runs a `def` in a thread, which may wait for a lock."""
    if not is_allowed(request.headers.get("x-client", "somebody")):
        raise HTTPException(429, f"more than {LIMIT} requests in {PERIOD_S:.0f} s")

    def compute() -> str:
        heap.root.incr("computed")
        return f"page {number}: {sum(range(number * 100_000))}"

    response.headers["x-worker"] = str(os.getpid())
    return cached(f"page {number}", compute)


def serve(listening: socket.socket) -> None:
    """What a worker does."""
    config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=1)
    uvicorn.Server(config).run(sockets=[listening])


def ask(port: int, number: int, client: str) -> tuple[int, int]:
    """The status of a page, and who answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request(
            "GET", f"/pages/{number}", headers={"x-client": client, "connection": "close"}
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status, int(answer.headers.get("x-worker", 0))
    finally:
        connection.close()


def main() -> None:
    """Serve, and ask."""
    global heap, ttl_s
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    parser.add_argument("--ttl", type=float, default=60.0, help="seconds [60]")
    options = parser.parse_args()
    heap, ttl_s = share.Heap(max_size=1 << 28), options.ttl
    heap.root.update(cache={}, clients={}, computed=0)
    heap.root["computing"] = share.Lock()
    context = multiprocessing.get_context("fork")
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        port = listening.getsockname()[1]
        crew = [context.Process(target=serve, args=(listening,)) for _ in range(options.workers)]
        for worker in crew:
            worker.start()
        seen = [ask(port, number % 5, f"client {number % 2}") for number in range(40)]
        answered = sum(status == 200 for status, _ in seen)
        print(
            f"{answered} requests for 5 pages were answered; {heap.root['computed']} were computed"
        )
        victim = next(worker for worker in crew if worker.pid == seen[-1][1])
        os.kill(victim.pid or 0, signal.SIGKILL)
        victim.join()
        seen = [ask(port, number % 5, "client 0") for number in range(50)]
        answered = sum(status == 200 for status, _ in seen)
        print(
            f"a worker was killed; of 50 more requests of a client that may ask {LIMIT} times a "
            f"minute and had asked 20 times, {answered} were answered; "
            f"{heap.root['computed']} pages were computed in all"
        )
        for worker in crew:
            worker.terminate()
        for worker in crew:
            worker.join()


if __name__ == "__main__":
    main()
