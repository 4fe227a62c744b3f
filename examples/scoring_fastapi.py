"""A FastAPI service that computes in an executor, and answers slowly because of it.

"/" is answered on the event loop. "/score/{number}" computes in one of four threads, as a service
does that was told not to block its loop. The loop has to wait for the GIL each time it comes back
from the network: a convoy behind the executor.

A client, in a process of its own, asks both for some seconds and prints how long "/" took:

    python examples/scoring_fastapi.py                # the symptom
    ungil trace examples/scoring_fastapi.py           # the cause
    ungil advise ungil-scoring_fastapi.pftrace        # what would help, and by how much
    python examples/scoring_fastapi.py --processes    # the cure that moves `score` to processes
"""

import argparse
import asyncio
import http.client
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

try:
    import uvicorn
    from fastapi import FastAPI
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install fastapi uvicorn")

SCORERS = 4

app = FastAPI()


@app.get("/")
async def greet() -> str:
    """Answered at once, if the loop gets the GIL."""
    return "hello"


@app.get("/score/{number}")
async def score_of(number: int) -> int:
    """Answered when a thread of the executor has computed it."""
    executor: Executor = app.state.executor
    return await asyncio.get_running_loop().run_in_executor(executor, score, number)


def score(number: int) -> int:
    """Some pure Python."""
    total = 0
    for step in range(300_000):
        total += (number * step) % 7
    return total


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """One request."""
    connection.request("GET", path)
    return connection.getresponse().read()


def request_scores(port: int, end: float) -> None:
    """A client that asks for one score after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.monotonic() < end:
        get(connection, "/score/3")
    connection.close()


def request_pages(port: int, seconds: float) -> None:
    """The client: as many scores as the executor can compute, and "/" all the time."""
    end = time.monotonic() + seconds
    scores = [threading.Thread(target=request_scores, args=(port, end)) for _ in range(SCORERS)]
    for thread in scores:
        thread.start()
    connection, times = http.client.HTTPConnection("127.0.0.1", port), []
    while (began := time.monotonic()) < end:
        if get(connection, "/") != b'"hello"':
            raise RuntimeError("the server said something else")
        times.append((time.monotonic() - began) * 1000)
    for thread in scores:
        thread.join()
    connection.close()
    p99 = sorted(times)[len(times) * 99 // 100]
    median = statistics.median(times)
    print(f"{len(times)} requests in {seconds:.0f} s: median {median:.1f} ms, p99 {p99:.1f} ms")


def main() -> None:
    """Serves until its client is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--processes", action="store_true", help="score in processes")
    parser.add_argument("--client", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        request_pages(options.client, options.seconds)
        return
    if options.processes:
        app.state.executor = ProcessPoolExecutor(SCORERS, get_context("spawn"))
    else:
        app.state.executor = ThreadPoolExecutor(SCORERS, thread_name_prefix="scorer")
    with app.state.executor, socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))

        def ask() -> None:
            port = listening.getsockname()[1]
            client = [sys.executable, sys.argv[0], "--client", str(port)]
            try:
                subprocess.run([*client, "--seconds", str(options.seconds)], check=True)
            finally:
                server.should_exit = True

        threading.Thread(target=ask, name="client").start()
        server.run(sockets=[listening])


if __name__ == "__main__":
    main()
