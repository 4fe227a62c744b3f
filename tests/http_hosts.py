"""An HTTP server on loopback for tests: every address of 127.0.0.0/8, one behaviour for each path.

It is as small as can be (asyncio's streams, HTTP/1.1 with keep-alive), in a process of its own.

| path            | answer |
|-----------------|--------|
| `/`             | the address that the client connected to |
| `/pause/S`      | the same, S seconds later |
| `/meet/N`       | the same, as soon as N requests wait for it: so many there were at once |
| `/status/N`     | that status |
| `/flaky/N/NAME` | status 503 the first N times that NAME is asked for, then 200 |
| `/most`         | how many requests there were at once at this address, at most |
| `/silence`      | none |
| `/half`         | the first half, then the connection breaks |
| `/garbage`      | what is not HTTP |
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import loopback


@contextmanager
def running() -> Generator[int]:
    """The port of the hosts, while the block runs."""
    with loopback.started(__file__) as announced:
        yield announced["port"]


class Hosts:
    """What all connections share: who waits for whom, and what was asked for before."""

    def __init__(self) -> None:
        self.meetings: dict[int, asyncio.Barrier] = {}
        self.asked: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def status(self, path: str) -> int:
        """The status of the answer, when it is time for it."""
        match path.strip("/").split("/"):
            case ["" | "most"]:
                return 200
            case ["pause", seconds]:
                await asyncio.sleep(float(seconds))
                return 200
            case ["meet", number]:
                meeting = self.meetings.setdefault(int(number), asyncio.Barrier(int(number)))
                await meeting.wait()
                return 200
            case ["status", number]:
                return int(number)
            case ["flaky", number, name]:
                self.asked[name] += 1
                return 503 if self.asked[name] <= int(number) else 200
            case _:
                return 404

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client closes it."""
        try:
            while request := await reader.readline():
                while (await reader.readline()).strip():
                    pass  # Headers.
                _, path, _ = request.decode().split()
                if not await self.answered(path, reader, writer):
                    break
        except ConnectionError:
            pass  # The client went away, which is its right.
        finally:
            writer.close()

    async def answered(
        self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        if path == "/silence":
            await reader.read()
            return False
        if path == "/garbage":
            writer.write(b"\0\1\2 this is not HTTP\r\n\r\n")
            return False
        address = writer.get_extra_info("sockname")[0]
        self.inside[address] += 1
        self.most[address] = max(self.most[address], self.inside[address])
        status = await self.status(path)
        self.inside[address] -= 1
        body = f"{self.most[address] if path == '/most' else address}\n".encode()
        head = f"HTTP/1.1 {status} Said so\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        if path == "/half":
            writer.write(head.replace(b"404", b"200") + body[: len(body) // 2])
            return False
        writer.write(head + body)
        await writer.drain()
        return True


async def main() -> None:
    """Starts the server and announces it."""
    loopback.as_many_descriptors_as_allowed()
    listening = loopback.listening()
    server = await asyncio.start_server(Hosts().connected, sock=listening, backlog=loopback.BACKLOG)
    await loopback.announced_until_the_end({"port": server.sockets[0].getsockname()[1]})


if __name__ == "__main__":
    asyncio.run(main())
