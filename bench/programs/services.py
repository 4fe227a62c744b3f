"""A service that knows how much it can stand, over HTTP/1.1 on the loopback.

    services.py KIND KNEE SECONDS

KIND says what becomes of those beyond KNEE at once: `knee` (they wait in line), `degrading` (all
take longer, with the square of the excess), `429` (turned away, with Retry-After: 1), `resets`
(their connection is reset); `hanging` is `knee`, and every 20th request is never answered.
Each takes SECONDS. Prints the port, and at the end of its standard input the most that were inside
at once, in line or served, without those that hang, and how many were turned away.
"""

import asyncio
import json
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import cast

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
# SO_LINGER with no time: closing sends RST.
RESET = struct.pack("ii", 1, 0)
HANGS_EACH = 20


class Service:
    """What all connections share."""

    def __init__(self, kind: str, knee: int, seconds: float) -> None:
        self._kind, self._knee, self._seconds = kind, knee, seconds
        self._line: deque[Callable[[], None]] = deque()
        self._busy = self._requests = 0
        self._inside = self.peak = self.turned_away = 0

    def come(self, connection: "Connection") -> None:
        """A request."""
        self._requests += 1
        if self._kind == "hanging" and self._requests % HANGS_EACH == 0:
            return
        if self._kind in ("429", "resets") and self._inside >= self._knee:
            # What was sent here too much is load, too.
            self.peak = max(self.peak, self._inside + 1)
            self.turned_away += 1
            connection.turn_away(self._kind)
            return
        self._inside += 1
        self.peak = max(self.peak, self._inside)
        loop = asyncio.get_running_loop()
        if self._kind == "degrading":
            slower = max(1.0, self._inside / self._knee) ** 2
            loop.call_later(self._seconds * slower, self._leave, connection)
        elif self._busy < self._knee:
            self._serve(connection)
        else:
            self._line.append(lambda: self._serve(connection))

    def _serve(self, connection: "Connection") -> None:
        self._busy += 1
        asyncio.get_running_loop().call_later(self._seconds, self._served, connection)

    def _served(self, connection: "Connection") -> None:
        self._busy -= 1
        self._leave(connection)
        if self._line:
            self._line.popleft()()

    def _leave(self, connection: "Connection") -> None:
        self._inside -= 1
        connection.answer(ANSWER)


class Connection(asyncio.Protocol):
    """One of a client, with one request at a time."""

    def __init__(self, service: Service) -> None:
        """Of no client yet."""
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps it."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Who has gone is served all the same, as a service does that has begun."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """A request is over with an empty line: nobody sends a body."""
        self._read += data
        if self._read.endswith(b"\r\n\r\n"):
            self._read = b""
            self._service.come(self)

    def answer(self, said: bytes) -> None:
        """The request is done."""
        if self._transport is not None:
            self._transport.write(said)

    def turn_away(self, how: str) -> None:
        """There is no room."""
        if how == "429":
            self.answer(TOO_MANY)
        elif self._transport is not None:
            peer = self._transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._transport.abort()


async def main() -> None:
    """As in the arguments."""
    kind, knee, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    service = Service(kind, knee, seconds)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(json.dumps({"peak": service.peak, "turned_away": service.turned_away}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
