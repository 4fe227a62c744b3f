"""Sends small requests to a web server at fixed times, beside some that compute, and measures.

    http_requests.py PORT --small PATH --rate R --seconds S [--compute PATH --computing N]

Open loop: request k is due at k / rate, whatever became of those before. A request takes an idle
connection, or a new one. N connections always have a computing request under way.

This process's own wake-ups are not in the figures: a request that it sends late counts from the
sending, unless all of its connections were in use, and an answer counts until the kernel had it.
"""

import argparse
import gc
import selectors
import socket
import time
from collections import deque

from connection import Connection
from says import begins, ends, say

# Not measured, for the server to fall into its ways.
WARM_UP_S = 0.7
# For the server to start, and for its last answers.
PATIENCE_S = 30.0
# At once, for small requests.
MOST_CONNECTIONS = 64
# Requests of a run that met a server which had just closed their connection.
MOST_SENT_AGAIN = 100


class Load:
    """All requests."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Nothing is sent yet."""
        self._options = options
        self._selector = selectors.DefaultSelector()
        self._idle: list[Connection] = []
        self._asked_ns: dict[Connection, int] = {}
        self._held_up: deque[int] = deque()
        self._computing: set[Connection] = set()
        self._sent_again = 0
        self.delays_ms: list[float] = []
        self.own_ms: list[float] = []

    def compute(self) -> None:
        """Begin the computing requests."""
        for _ in range(self._options.computing):
            self._ask_to_compute(self._open())

    def run(self, seconds: float) -> None:
        """Send for so long, and read what comes. What was sent before is not measured."""
        for connection in self._asked_ns:
            self._asked_ns[connection] = 0
        self._held_up.clear()
        self.delays_ms.clear()
        self.own_ms.clear()
        period_ns = round(1e9 / self._options.rate)
        start_ns = time.time_ns()
        for number in range(int(seconds * self._options.rate)):
            due_ns = start_ns + number * period_ns
            while (left_ns := due_ns - time.time_ns()) > 0:
                self._read(left_ns / 1e9)
            self.own_ms.append((time.time_ns() - due_ns) / 1e6)
            if not self._idle and len(self._asked_ns) >= MOST_CONNECTIONS:
                self._held_up.append(due_ns)
            else:
                self._ask(time.time_ns())

    def finish(self) -> None:
        """Wait for the answers that are missing. One that does not come counts as if it did."""
        end_s = time.monotonic() + PATIENCE_S
        while self._asked_ns or self._held_up:
            if time.monotonic() > end_s:
                counts_from_ns = [*self._asked_ns.values(), *self._held_up]
                now_ns = time.time_ns()
                self.delays_ms += [(now_ns - it) / 1e6 for it in counts_from_ns if it]
                return
            self._read(1.0)

    def _open(self) -> Connection:
        """A new connection."""
        connection = Connection(self._options.port)
        self._selector.register(connection.channel, selectors.EVENT_WRITE, connection)
        return connection

    def _ask(self, counts_from_ns: int) -> None:
        """Send a small request."""
        connection = self._idle.pop() if self._idle else self._open()
        self._asked_ns[connection] = counts_from_ns
        connection.send(self._options.small)

    def _ask_to_compute(self, connection: Connection) -> None:
        """Send a computing one."""
        self._computing.add(connection)
        connection.send(self._options.compute)

    def _read(self, wait_s: float) -> None:
        """What has come, or comes in so long."""
        for key, _events in self._selector.select(wait_s):
            connection: Connection = key.data
            if not connection.is_connected:
                connection.connected()
                self._selector.modify(key.fileobj, selectors.EVENT_READ, connection)
                continue
            came_ns = connection.read()
            if not connection.is_open:
                self._selector.unregister(key.fileobj)
            if came_ns is not None:
                self._answered(connection, came_ns)
            elif not connection.is_open:
                self._closed(connection)

    def _closed(self, connection: Connection) -> None:
        """The server closed one that was idle to it: what was sent just then is sent again."""
        if connection in self._idle:
            self._idle.remove(connection)
            return
        self._sent_again += 1
        if self._sent_again > MOST_SENT_AGAIN:
            raise SystemExit(f"the server closed {self._sent_again} connections without an answer")
        if connection in self._computing:
            self._computing.discard(connection)
            self._ask_to_compute(self._open())
        else:
            self._ask(self._asked_ns.pop(connection))

    def _answered(self, connection: Connection, came_ns: int) -> None:
        """A request is done: the next one, if it was one that computes."""
        if connection in self._computing:
            self._computing.discard(connection)
            self._ask_to_compute(connection if connection.is_open else self._open())
            return
        counts_from_ns = self._asked_ns.pop(connection)
        if counts_from_ns:
            self.delays_ms.append((came_ns - counts_from_ns) / 1e6)
        if connection.is_open:
            self._idle.append(connection)
        if self._held_up:
            # It would have been sent when it was due, if the server had answered others sooner.
            self._ask(self._held_up.popleft())


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > end_s:
                raise SystemExit(
                    f"nobody listens on port {port} after {PATIENCE_S:.0f} s"
                ) from None
            time.sleep(0.05)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--small", required=True, help="path")
    parser.add_argument("--rate", type=float, required=True, help="of these, a second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--compute", help="path")
    parser.add_argument("--computing", type=int, default=0, help="of these, at once")
    options = parser.parse_args()
    wait_for(options.port)
    gc.disable()
    load = Load(options)
    # A first answer, for which servers import and compile.
    load.run(1 / options.rate)
    load.finish()
    load.compute()
    load.run(WARM_UP_S)
    begins()
    load.run(options.seconds)
    ends()
    load.finish()
    say({"late_ms": load.delays_ms, "own_ms": load.own_ms})


if __name__ == "__main__":
    main()
