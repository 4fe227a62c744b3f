"""A server and its client on one event loop, with a handler that computes; or no loop at all."""

import asyncio
import sys
import time

REQUESTS = 15
# Of a processor: asyncio itself calls a callback of 0.1 s slow.
LENGTH_S = 0.15


def tokenise(text):
    """Blocks the loop."""
    until_s = time.thread_time() + LENGTH_S
    letters = 0
    while time.thread_time() < until_s:
        for word in text:
            letters += len(word)
    return letters


async def handle(reader, writer):
    """Answers each line."""
    while line := await reader.readline():
        writer.write(b"%d\n" % tokenise([line] * 100))
    writer.close()


async def main():
    """Asks."""
    server = await asyncio.start_server(handle, "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for _ in range(REQUESTS):
        writer.write(b"words\n")
        await reader.readline()
    writer.close()
    server.close()


if sys.argv[1:] == ["plain"]:
    for _ in range(REQUESTS):
        tokenise([b"words"] * 100)
        time.sleep(0.001)
else:
    asyncio.run(main())
