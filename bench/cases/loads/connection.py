"""A connection of HTTP/1.1 that tells when the kernel had an answer, not when it was read."""

import os
import socket
import struct
import time
from contextlib import suppress

import h11

# <asm-generic/socket.h>, socket(7)
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")


class Connection:
    """One to a server on the loopback, with one request at a time."""

    def __init__(self, port: int) -> None:
        """Begin to connect. A server whose backlog is full lets that take seconds."""
        self.channel = socket.socket()
        self.channel.setblocking(False)
        self.channel.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.channel.connect_ex(("127.0.0.1", port))
        self._http = h11.Connection(h11.CLIENT)
        self._unsent = b""
        self.is_connected = False
        self.is_open = True

    def connected(self) -> None:
        """The channel can be written to for the first time: send what was to be sent."""
        error = self.channel.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise SystemExit(f"the server cannot be reached: {os.strerror(error)}")
        self.is_connected = True
        self._send()

    def send(self, path: str) -> None:
        """A request, now or as soon as there is a connection."""
        request = h11.Request(method="GET", target=path, headers=[("Host", "127.0.0.1")])
        parts = [self._http.send(request), self._http.send(h11.EndOfMessage())]
        self._unsent = b"".join(part or b"" for part in parts)
        if self.is_connected:
            self._send()

    def _send(self) -> None:
        """Send it. A server that has just closed the connection is seen when it is read."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.channel.sendall(self._unsent)

    def read(self) -> int | None:
        """When the answer was there wholly, in nanoseconds of the epoch; None if it is not yet.

        The connection may be closed (`is_open`) afterwards, also where nothing was asked.
        """
        try:
            data, control, _flags, _sender = self.channel.recvmsg(65536, 64)
        except ConnectionResetError:
            self._close()
            return None
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response) and event.status_code != 200:
                raise SystemExit(f"the server answered with status {event.status_code}")
            if isinstance(event, h11.ConnectionClosed):
                self._close()
                return None
            if isinstance(event, h11.EndOfMessage):
                break
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self._close()
        return _stamp_ns(control)

    def _close(self) -> None:
        """No request after this one."""
        self.is_open = False
        self.channel.close()


def _stamp_ns(control: "list[tuple[int, int, bytes]]") -> int:
    """When the kernel took in what was read; now, for the end of a stream, which has no time."""
    for level, kind, value in control:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = TIMESPEC.unpack(value)
            return seconds * 1_000_000_000 + nanoseconds
    return time.time_ns()
