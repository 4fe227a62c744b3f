"""Sends two kinds of requests to a web server at fixed times and measures the answers.

Open loop: request k of a kind is due at k / rate, whatever happened to those before. A few threads
with a connection each take turns; where all of them still wait for an answer, a request is sent
late, but counted from when it was due. Prints the delays in milliseconds.
"""

import argparse
import gc
import http.client
import os
import threading
import time
from pathlib import Path

import work

# So many requests of a kind can be under way.
CONNECTIONS = 6
PATIENCE_S = 30.0
# For the server's threads to start and to have imported what they need.
WARM_UP = 30


class Kind:
    """A kind of request and the delays of its answers."""

    def __init__(self, port: int, path: str, rate: float, seconds: float) -> None:
        """Not begun yet."""
        self._port, self._path, self._rate = port, path, rate
        self._count = int(rate * seconds)
        self.delays_ms: list[float] = []

    def send_from(self, start_s: float) -> "list[threading.Thread]":
        """Start the threads that send, the first request at `start_s` of `perf_counter`."""
        senders = [
            threading.Thread(target=self._send, args=(number, start_s))
            for number in range(CONNECTIONS)
        ]
        for sender in senders:
            sender.start()
        return senders

    def _send(self, first: int, start_s: float) -> None:
        """Every `CONNECTIONS`th request from `first` on."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        connection.connect()
        for number in range(first, self._count, CONNECTIONS):
            due_s = start_s + number / self._rate
            left_s = due_s - time.perf_counter()
            if left_s > 0:
                time.sleep(left_s)
            get(connection, self._path)
            self.delays_ms.append((time.perf_counter() - due_s) * 1e3)
        connection.close()


def get(connection: http.client.HTTPConnection, path: str) -> None:
    """One request and its answer."""
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body!r}")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--small", type=float, required=True, help="requests a second")
    parser.add_argument("--burn", type=float, required=True, help="requests a second")
    parser.add_argument("--calls", type=int, required=True, help="of a request that computes")
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    # The kernel may end a sleep 50 us late, to end several at once (proc_pid_timerslack_ns(5)).
    Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    control = http.client.HTTPConnection("127.0.0.1", options.port, timeout=PATIENCE_S)
    for _ in range(WARM_UP):
        get(control, "/small")
    gc.disable()
    small = Kind(options.port, "/small", options.small, options.seconds)
    burn = Kind(options.port, f"/burn/{options.calls}", options.burn, options.seconds)
    get(control, "/begin")
    start_s = time.perf_counter() + 0.05
    for sender in [*small.send_from(start_s), *burn.send_from(start_s)]:
        sender.join()
    get(control, "/end")
    wall_s = time.perf_counter() - start_s
    work.say({"small_ms": small.delays_ms, "burn_ms": burn.delays_ms, "load_s": wall_s})


if __name__ == "__main__":
    main()
