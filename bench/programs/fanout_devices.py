"""Fake devices: `fanout_devices.py RTT_S`, where Go is not installed (see go/devices/main.go).

Answers, RTT_S seconds later, each line that comes in on any address of this machine. Says its port,
and ends with its standard input. On uvloop, where it is installed.
"""

import asyncio
import socket
import sys

ANSWER = b"fake device, version 1.0, up for 3 days\n"
BACKLOG = 4096
# The kernel gives each its share of the connections, so that no backlog runs over.
LISTENERS = 4


class Device(asyncio.Protocol):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rtt_s: float) -> None:
        """Of one client."""
        self._loop, self._rtt_s = loop, rtt_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Keeps what it answers on."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers a line later."""
        if data.endswith(b"\n"):
            self._loop.call_later(self._rtt_s, self._transport.write, ANSWER)


async def serve(rtt_s: float) -> None:
    """Until standard input ends."""
    loop, port = asyncio.get_running_loop(), 0
    for _ in range(LISTENERS):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("", port))
        port = listener.getsockname()[1]
        await loop.create_server(lambda: Device(loop, rtt_s), sock=listener, backlog=BACKLOG)
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serves."""
    try:
        import uvloop as loops
    except ImportError:
        loops = asyncio
    loops.run(serve(float(sys.argv[1])))


if __name__ == "__main__":
    main()
