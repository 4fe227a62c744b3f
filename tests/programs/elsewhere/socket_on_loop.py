"""A handler that asks a slow server with a blocking socket, on the event loop."""

import asyncio

from beside import ask, slow_server


async def tick():
    """What suffers."""
    while True:
        await asyncio.sleep(0.01)


def handle(port):
    """Blocks the loop."""
    return ask(port)


async def main(port):
    """Both."""
    ticking = asyncio.create_task(tick())
    for _ in range(8):
        await asyncio.sleep(0.02)
        handle(port)
    ticking.cancel()


with slow_server() as port:
    asyncio.run(main(port))
