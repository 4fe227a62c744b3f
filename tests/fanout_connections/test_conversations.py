"""What is said over a connection, and how it ends."""

import asyncio
import os
import socket
import threading
from contextlib import suppress
from typing import Any

import pytest
from fanout_connections.servers import Run, echo, says, value

from ungil.fanout import (
    Connection,
    connect,
    fanout,
    sleep,
)


def test_a_thousand_conversations_at_once(run: Run, serve: Any) -> None:
    host, port = serve(echo, backlog=1000)

    async def task(item: int) -> list[bytes]:
        async with connect(host, port) as connection:
            answers: list[bytes] = []
            for number in range(3):
                await connection.write(b"item %d, %d\n" % (item, number))
                answers.append(await connection.read_line())
            return answers

    outcomes = run(task, range(200), limit=100)
    for item, outcome in enumerate(outcomes):
        assert outcome.unwrap() == [b"ITEM %d, %d\n" % (item, number) for number in range(3)]


def test_what_has_arrived_is_read_as_it_is_asked_for(run: Run, serve: Any) -> None:
    host, port = serve(says(b"one\ntwo--three", b"--four 12345678", b"the\nend"))

    async def task(_: int) -> list[bytes]:
        with await connect(host, port) as connection:
            return [
                await connection.read_line(),
                await connection.read_until(b"--"),
                await connection.read(0),
                await connection.read_until(b"--"),
                await connection.read_exactly(5),
                await connection.read_exactly(8),
                await connection.read_line(),
                await connection.read_line(),
                await connection.read_line(),
                await connection.read(10),
                await connection.read(),
            ]

    assert value(run(task)) == [
        *(b"one\n", b"two--", b"", b"three--", b"four ", b"12345678"),
        *(b"the\n", b"end", b"", b"", b""),
    ]


def test_a_separator_may_arrive_in_two_parts(run: Run, serve: Any) -> None:
    def speak(peer: socket.socket) -> None:
        peer.sendall(b"first+")
        peer.recv(1)
        peer.sendall(b"+second")

    host, port = serve(speak)

    async def task(_: int) -> tuple[bytes, bytes]:
        with await connect(host, port) as connection:
            begin = await connection.read_exactly(5)
            await connection.write(b"!")
            return begin + await connection.read_until(b"++"), await connection.read()

    assert value(run(task)) == (b"first++", b"second")


def test_everything_to_the_end_and_more_than_fits_the_buffers(run: Run, serve: Any) -> None:
    size = 5_000_000

    def double(peer: socket.socket) -> None:
        received = bytearray()
        while len(received) < size:
            received += peer.recv(1 << 20)
        peer.sendall(received + received)

    host, port = serve(double)
    data = os.urandom(size)

    async def task(_: int) -> tuple[bytes, bytes]:
        with await connect(host, port) as connection:
            await connection.write(memoryview(data))
            return await connection.read_exactly(size), await connection.read()

    assert value(run(task)) == (data, data)


def test_a_line_without_an_end_is_an_error_at_its_limit(run: Run, serve: Any) -> None:
    host, port = serve(says(b"x" * 200_000))

    async def task(_: int) -> bytes:
        async with connect(host, port) as connection:
            return await connection.read_line(limit=100_000)

    with pytest.raises(ValueError, match=rf"^{host}:{port} has sent \d+ bytes .*limit=100000"):
        value(run(task))


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("read_exactly", 7, "after 5 of 7 bytes"),
        ("read_until", b"\r\n", r'after 5 bytes without "\\r\\n"'),
    ],
)
def test_an_end_too_early_is_an_error(
    run: Run, serve: Any, name: str, argument: object, message: str
) -> None:
    host, port = serve(says(b"short"))

    async def task(_: int) -> bytes:
        with await connect(host, port) as connection:
            try:
                return await getattr(connection, name)(argument)
            finally:
                assert await connection.read() == b"short"  # Nothing is lost.

    with pytest.raises(EOFError, match=f"{host}:{port} has closed the connection {message}"):
        value(run(task))


def test_a_peer_that_is_gone_is_an_error(run: Run, serve: Any) -> None:
    def reset(peer: socket.socket) -> None:
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    host, port = serve(reset)

    async def task(_: int) -> bytes:
        async with connect(host, port) as connection:
            await connection.write(b"x")
            return await connection.read()

    with pytest.raises(ConnectionResetError, match=f"{host}:{port}"):
        value(run(task))


def test_a_timeout_ends_a_read_and_the_connection_is_still_good(run: Run, serve: Any) -> None:
    go_on = threading.Event()

    def hesitate(peer: socket.socket) -> None:
        peer.sendall(b"one\n")
        go_on.wait(60)
        peer.sendall(b"two\n")

    host, port = serve(hesitate)
    connections: list[Connection] = []

    async def hang(_: int) -> None:
        connection = await connect(host, port)
        connections.append(connection)
        await connection.read_line()
        await connection.read_line()

    async def go(connection: Connection) -> bytes:
        go_on.set()
        with connection:
            return await connection.read_line()

    assert isinstance(run(hang, timeout=1)[0].exception, TimeoutError)
    assert value(run(go, connections)) == b"two\n"


def test_two_cannot_read_the_same_connection(run: Run, serve: Any) -> None:
    host, port = serve(echo)
    shared: list[Connection] = []

    async def task(item: int) -> bytes:
        if item == 0:
            shared.append(await connect(host, port))
        while not shared:
            await sleep(0.001)
        connection = shared[0]
        try:
            return await connection.read_line()
        except RuntimeError:
            await connection.write(b"go on\n")
            raise

    outcomes = run(task, range(2))
    assert outcomes[0].value == b"GO ON\n"
    with pytest.raises(RuntimeError, match=f"another item reads from {host}:{port} already"):
        outcomes[1].unwrap()
    shared.pop().close()


def test_closing_a_connection_ends_who_reads_it(run: Run, serve: Any) -> None:
    host, port = serve(echo)
    shared: list[Connection] = []

    async def task(item: int) -> bytes:
        if item == 1:
            while not shared:
                await sleep(0.001)
            await sleep(0.001)
            shared[0].close()
            return b""
        shared.append(await connect(host, port))
        return await shared[0].read()

    outcomes = run(task, range(2))
    assert outcomes[1].ok
    with pytest.raises(OSError, match=f"Bad file descriptor: {host}:{port}"):
        outcomes[0].unwrap()
    assert shared[0].closed


def test_a_closed_connection_says_so(run: Run, serve: Any) -> None:
    host, port = serve(echo)

    async def task(_: int) -> None:
        async with connect(host, port) as connection:
            assert repr(connection) == f"<connection to {host}:{port}>"
        assert repr(connection) == f"<closed connection to {host}:{port}>"
        with pytest.raises(OSError, match="Bad file descriptor"):
            await connection.write(b"x")
        with pytest.raises(OSError, match="Bad file descriptor"):
            await connection.read(1)
        with pytest.raises(OSError, match="Bad file descriptor"):
            connection.fileno()

    value(run(task))


def test_a_connection_outlives_its_loop(serve: Any) -> None:
    host, port = serve(echo)
    connection: list[Connection] = []

    async def begin(_: int) -> bytes:
        connection.append(await connect(host, port))
        return await talk(1)

    async def talk(item: int) -> bytes:
        await connection[0].write(b"item %d\n" % item)
        return await connection[0].read_line()

    assert value(list(fanout(begin, [1], mode="lean"))) == b"ITEM 1\n"
    assert value(list(fanout(talk, [2], mode="asyncio"))) == b"ITEM 2\n"
    lean = fanout(talk, [3, 4], mode="lean", limit=1)
    assert next(lean).unwrap() == b"ITEM 3\n"
    assert value(list(fanout(talk, [5], mode="lean"))) == b"ITEM 5\n"
    assert next(lean).unwrap() == b"ITEM 4\n"
    connection[0].close()


def test_connections_that_nobody_has_are_closed(run: Run, serve: Any) -> None:
    ended = threading.Semaphore(0)

    def wait_for_the_end(peer: socket.socket) -> None:
        assert peer.recv(1) == b""
        ended.release()

    host, port = serve(wait_for_the_end)

    async def task(_: int) -> None:
        await connect(host, port)

    assert all(outcome.ok for outcome in run(task, range(10)))
    for _ in range(10):
        assert ended.acquire(timeout=60)


def test_a_peer_that_always_talks_keeps_nobody_waiting(run: Run, serve: Any) -> None:
    ended = threading.Event()

    def talk(peer: socket.socket) -> None:
        with suppress(ConnectionError):  # It is hung up on.
            while not ended.is_set():
                peer.sendall(b"x\n" * 10_000)

    host, port = serve(talk)

    async def task(item: int) -> None:
        if item == 0:
            async with connect(host, port) as connection:
                while not ended.is_set():
                    await connection.read_line()
        else:
            await sleep(0.001)
            ended.set()

    for outcome in run(task, range(2)):
        outcome.unwrap()


def test_a_program_with_a_loop_of_its_own_can_use_connections(serve: Any) -> None:
    host, port = serve(echo)

    async def main() -> tuple[bytes, bytes]:
        async with connect(host, port) as connection:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.read_line(), 0.01)
            await connection.write(b"one\ntwo\n")
            return await connection.read_line(), await connection.read_line()

    assert asyncio.run(main()) == (b"ONE\n", b"TWO\n")
