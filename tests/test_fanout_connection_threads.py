"""A connection of the lean loop, and another thread that looks at it."""

from __future__ import annotations

import socket
import threading

from meanwhile import Meanwhile

from ungil.fanout import Connection, connect, fanout

LINES = 500


def echo(server: socket.socket) -> None:
    """Give back what the first client sends, to its end."""
    client, _ = server.accept()
    with client:
        while data := client.recv(1 << 12):
            client.sendall(data)


def test_another_thread_may_look_at_a_connection_that_is_used() -> None:
    seen: list[Connection] = []

    async def talk(port: int) -> int:
        async with connect("127.0.0.1", port) as connection:
            seen.append(connection)
            for number in range(LINES):
                await connection.write(b"%d\n" % number)
                assert await connection.read_line() == b"%d\n" % number
            return connection.fileno()

    def look() -> None:
        for connection in seen:
            assert connection.closed in {False, True}
            assert "connection to 127.0.0.1:" in repr(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        with Meanwhile(look, look):
            (outcome,) = fanout(talk, [server.getsockname()[1]], mode="lean")
        assert outcome.unwrap() >= 0
    assert seen[0].closed
