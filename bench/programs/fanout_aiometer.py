"""aiometer.run_all on asyncio, with asyncio's streams, LIMIT at once: see fanout_work.py."""

import asyncio
from functools import partial

import aiometer
from fanout_work import QUESTION, Work, host, main


async def _all(work: Work) -> int:
    """A result for each item."""

    async def sleep(item: int) -> int:
        await asyncio.sleep(work.rtt_s)
        return item

    async def talk(item: int) -> bytes:
        reader, writer = await asyncio.open_connection(host(item), work.port)
        try:
            writer.write(QUESTION)
            return await reader.readuntil(b"\n")
        finally:
            writer.close()

    task = talk if work.port else sleep
    calls = [partial(task, item) for item in range(work.items)]
    return len(await aiometer.run_all(calls, max_at_once=work.limit or None))


def run_all(work: Work) -> int:
    """In an event loop of its own."""
    return asyncio.run(_all(work))


if __name__ == "__main__":
    main({"run_all": run_all})
