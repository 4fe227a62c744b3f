"""`connect` and what else of `ungil.fanout` waits for descriptors, on both kinds of event loop."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from ungil.fanout import (
    Connection,
    Outcome,
    connect,
    connect_unix,
    fanout,
    sleep,
    wait_readable,
    wait_writable,
)

Run = Callable[..., list[Outcome]]


@pytest.fixture(params=["lean", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs an `async def` for items, in one mode after the other."""

    def run(fn: Callable[[Any], Any], items: Any = (1,), **options: Any) -> list[Outcome]:
        return list(fanout(fn, items, mode=request.param, **options))

    return run


def value(outcomes: list[Outcome]) -> Any:
    (outcome,) = outcomes
    return outcome.unwrap()


class Server:
    """Calls `serve` with each connection, in a thread of its own."""

    def __init__(self, listener: socket.socket, serve: Callable[[socket.socket], object]) -> None:
        self.listener = listener
        self.serve = serve
        self.threads: list[threading.Thread] = []
        self.address: Any = listener.getsockname()
        self.acceptor = threading.Thread(target=self.accept)
        self.acceptor.start()

    def accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.talk, args=(peer,))
            self.threads.append(thread)
            thread.start()

    def talk(self, peer: socket.socket) -> None:
        with peer:
            self.serve(peer)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in (self.acceptor, *self.threads):
            thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[str, int]]]:
    """Starts a server. Gives its address."""
    servers: list[Server] = []

    def start(
        serve: Callable[[socket.socket], object], host: str = "127.0.0.1", backlog: int = 128
    ) -> Any:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, 0), family=family, backlog=backlog)
        servers.append(Server(listener, serve))
        return servers[-1].address[:2]

    yield start
    for server in servers:
        server.close()


def echo(peer: socket.socket) -> None:
    """Sends lines back until there is none."""
    with peer.makefile("rwb") as file:
        for line in file:
            file.write(line.upper())
            file.flush()


def says(*parts: bytes) -> Callable[[socket.socket], None]:
    """Sends this, and closes."""

    def say(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)

    return say


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
        (lambda: connect("a\0b", 1), ValueError, "has a zero character"),
        (lambda: connect_unix("x" * 200), ValueError, "longer than a socket's can be"),
        (lambda: connect_unix(""), ValueError, "empty"),
        (lambda: wait_readable(cast("Any", "x")), TypeError, "'x' is no descriptor"),
        (lambda: wait_readable(-1), ValueError, "-1 is no open descriptor"),
    ],
)
def test_mistakes_are_told_at_once(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()


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

    assert isinstance(run(hang, timeout=0.05)[0].exception, TimeoutError)
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


def test_descriptors_of_others_can_be_waited_for(run: Run) -> None:
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writable, bytes(1 << 16))

    async def task(item: str) -> int:
        if item == "writer":
            await wait_writable(writable)
            return os.write(writable, b"x")
        await sleep(0.001)
        await wait_readable(file)
        return len(file.read(1 << 20))

    with os.fdopen(readable, "rb", buffering=0) as file:
        written, read = (outcome.unwrap() for outcome in run(task, ["writer", "reader"]))
    os.close(writable)
    assert written == 1
    assert read >= 4096


def test_a_file_is_always_ready(tmp_path: Path) -> None:
    async def task(_: int) -> str:
        with (tmp_path / "file").open("w+") as file:
            await wait_writable(file)
            await wait_readable(file)
            return file.read()

    assert value(list(fanout(task, [1], mode="lean"))) == ""


def test_two_cannot_wait_for_the_same_descriptor() -> None:
    readable, writable = os.pipe()

    async def task(item: int) -> None:
        try:
            await wait_readable(readable)
        except RuntimeError:
            os.close(writable)
            raise

    outcomes = list(fanout(task, range(2), mode="lean"))
    os.close(readable)
    outcomes[0].unwrap()
    with pytest.raises(RuntimeError, match=f"another item waits for descriptor {readable} already"):
        outcomes[1].unwrap()


def test_a_connections_own_descriptor_cannot_be_waited_for(serve: Any) -> None:
    host, port = serve(echo)

    async def task(_: int) -> None:
        async with connect(host, port) as connection:
            await connection.write(b"x\n")
            await connection.read_line()
            await wait_readable(connection)

    with pytest.raises(RuntimeError, match="is a Connection's: use its read and write"):
        value(list(fanout(task, [1], mode="lean")))


def test_a_program_with_a_loop_of_its_own_can_use_connections(serve: Any) -> None:
    host, port = serve(echo)

    async def main() -> tuple[bytes, bytes]:
        async with connect(host, port) as connection:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.read_line(), 0.01)
            await connection.write(b"one\ntwo\n")
            return await connection.read_line(), await connection.read_line()

    assert asyncio.run(main()) == (b"ONE\n", b"TWO\n")


def test_outside_of_an_event_loop_nothing_can_be_awaited() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        sleep(1).__await__().send(None)
