"""Whom `connect` reaches: names, numbers, sockets of this machine, and mistakes."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from fanout_connections.servers import Run, Server, echo, says, value

from ungil.fanout import (
    Connection,
    connect,
    connect_unix,
    wait_readable,
)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_errors_are_those_of_the_system_and_say_with_whom(run: Run) -> None:
    port = closed_port()

    async def task(host: str) -> None:
        await connect(host, port)

    outcomes = run(task, ["127.0.0.1", "no-such-host.invalid", "localhost"])
    with pytest.raises(ConnectionRefusedError, match=f"Connection refused: 127.0.0.1:{port}$"):
        outcomes[0].unwrap()
    with pytest.raises(socket.gaierror, match=f": no-such-host.invalid:{port}$"):
        outcomes[1].unwrap()
    with pytest.raises(ConnectionRefusedError, match=f": localhost:{port}$"):
        outcomes[2].unwrap()


def test_names_are_resolved(run: Run, serve: Any) -> None:
    _, port = serve(says(b"hello\n"))

    async def task(host: str) -> bytes:
        async with connect(host, port) as connection:
            return await connection.read_line()

    outcomes = run(task, ["localhost", "127.1"] * 25)
    assert [outcome.unwrap() for outcome in outcomes] == [b"hello\n"] * 50


def test_version_6(run: Run, serve: Any) -> None:
    if not has_version_6():
        with pytest.raises(OSError, match=r"\[::1\]:9"):
            value(run(connects, [("::1", 9)]))
        return
    host, port = serve(says(b"hello\n"), host="::1")

    async def task(_: int) -> bytes:
        async with connect(host, port) as connection:
            return await connection.read_line()

    assert value(run(task)) == b"hello\n"


async def connects(address: tuple[str, int]) -> Connection:
    return await connect(*address)


def has_version_6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("name", ["{tmp_path}/socket", "\0ungil-test-{pid}"])
def test_unix_sockets(run: Run, tmp_path: Path, name: str) -> None:
    path = name.format(tmp_path=tmp_path, pid=os.getpid())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    # So few may wait that others are told to come again.
    listener.listen(1)
    server = Server(listener, echo)

    async def task(item: int) -> bytes:
        async with connect_unix(path) as connection:
            await connection.write(b"item %d\n" % item)
            return await connection.read_line()

    outcomes = run(task, range(30))
    server.close()
    assert [outcome.unwrap() for outcome in outcomes] == [b"ITEM %d\n" % i for i in range(30)]


def test_a_unix_socket_that_is_missing(run: Run, tmp_path: Path) -> None:
    async def task(_: int) -> None:
        await connect_unix(tmp_path / "none")

    with pytest.raises(FileNotFoundError, match=f"No such file or directory: {tmp_path}/none"):
        value(run(task))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: connect("x", 70_000), ValueError, "port=70000 is not from 0 to 65535"),
        (lambda: connect(cast("Any", b"x"), 1), TypeError, "host=b'x' is not a string"),
        (lambda: connect("a\0b", 1), ValueError, "contains a NUL character"),
        (lambda: connect_unix("x" * 200), ValueError, "longer than a socket's can be"),
        (lambda: connect_unix(""), ValueError, "empty"),
        (lambda: wait_readable(cast("Any", "x")), TypeError, "'x' is not a descriptor"),
        (lambda: wait_readable(-1), ValueError, "-1 is not an open descriptor"),
    ],
)
def test_mistakes_are_told_at_once(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()
