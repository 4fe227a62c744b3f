"""A handler that sleeps on the event loop, beside a task that ticks."""

import asyncio
import time


async def tick():
    """What suffers."""
    while True:
        await asyncio.sleep(0.01)


def handle():
    """Blocks the loop."""
    time.sleep(0.2)


async def main():
    """Both."""
    ticking = asyncio.create_task(tick())
    for _ in range(8):
        await asyncio.sleep(0.05)
        handle()
    ticking.cancel()


asyncio.run(main())
