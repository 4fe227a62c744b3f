"""A web server (waitress) that slows down because one of its threads computes.

Every request does a little I/O: reads a file, as a handler that looks something up would.
The thread "report-builder" computes without pause, as a nightly report in the same process would.
Each time a request thread comes back from I/O it has to wait until the report-builder is made to
let go of the GIL, a whole switch interval (5 ms) later: a convoy.

A client, in a process of its own, asks for pages for some seconds and prints how long they took:

    python examples/convoy_server.py                  # the symptom
    ungil trace examples/convoy_server.py             # the cause
    python examples/convoy_server.py --no-report      # without the computing thread
"""

import argparse
import http.client
import logging
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

try:
    import waitress
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install waitress")

PAGE = Path(__file__).read_bytes()


def application(environ, start_response):
    """Serves this file, read anew for each request."""
    body = Path(__file__).read_bytes()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def build_report(stop: threading.Event) -> None:
    """Computes in pure Python until told to stop."""
    total = 0
    while not stop.is_set():
        for number in range(100_000):
            total += number * number


def request_pages(port: int, seconds: float) -> None:
    """The client: asks for the page over one connection for a while, prints the answer times."""
    times = []
    connection = http.client.HTTPConnection("127.0.0.1", port)
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        connection.request("GET", "/")
        answer = connection.getresponse().read()
        if answer != PAGE:
            raise RuntimeError(f"the server answered {len(answer)} bytes instead of {len(PAGE)}")
        times.append((time.monotonic() - began) * 1000)
    connection.close()
    p99 = sorted(times)[len(times) * 99 // 100]
    median = statistics.median(times)
    print(f"{len(times)} requests in {seconds:.0f} s: median {median:.1f} ms, p99 {p99:.1f} ms")


def serve(seconds: float, *, with_report: bool) -> None:
    """The server: runs until its client is done."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # It notices the convoy, too.
    server = waitress.create_server(application, host="127.0.0.1", port=0, threads=4)
    threading.Thread(target=server.run, name="server-loop", daemon=True).start()
    stop = threading.Event()
    report = threading.Thread(target=build_report, args=(stop,), name="report-builder")
    if with_report:
        report.start()
    client = [sys.executable, sys.argv[0], "--client", str(server.effective_port)]
    try:
        subprocess.run([*client, "--seconds", str(seconds)], check=True)
    finally:
        stop.set()
        if with_report:
            report.join()
        server.close()


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--no-report", action="store_true", help="without the computing thread")
    parser.add_argument("--client", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        request_pages(options.client, options.seconds)
    else:
        serve(options.seconds, with_report=not options.no_report)


if __name__ == "__main__":
    main()
