"""A worker that computes in threads and exposes its metrics to Prometheus."""

import sys
import threading

from computing import compute
from prometheus_client import Counter, start_http_server

jobs = Counter("jobs", "Jobs that were done")


def work() -> None:
    """One job after the other."""
    while True:
        compute()
        jobs.inc()


if __name__ == "__main__":
    port, threads = map(int, sys.argv[1:])
    for _ in range(threads):
        threading.Thread(target=work, daemon=True).start()
    start_http_server(port, addr="127.0.0.1")
    threading.Event().wait()
