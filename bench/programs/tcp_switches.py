"""One thread releases and retakes the GIL around each call on a loopback TCP connection.

The argument is the number of exchanges; each is two calls that release the GIL.
"""

import socket

import work

EXCHANGES = 80_000


def exchange(writer: socket.socket, reader: socket.socket, exchanges: int) -> None:
    """Send a byte and receive it, again and again."""
    send, receive = writer.send, reader.recv
    for _ in range(exchanges):
        send(b"x")
        receive(1)


if __name__ == "__main__":
    exchanges = work.count(EXCHANGES)
    work.pin()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as writer,
    ):
        reader, _ = server.accept()
        with reader:
            writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            work.measure(lambda: exchange(writer, reader, exchanges), releases=2 * exchanges)
