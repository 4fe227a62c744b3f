"""A Dask scheduler and a client whose tasks compute; it asks a worker's event loop who it is.

    dask_scheduler.py --tasks N --seconds S --rate R

Prints its address and waits for a worker. N tasks are always with that worker. Its heartbeats come
from the loop that answers here; the scheduler takes a worker for dead that sends none for long.
"""

import argparse
import asyncio

import computing
import pacing
from distributed import Client, Scheduler
from distributed.core import rpc
from says import say

PATIENCE_S = 60.0


async def keep_busy(client: Client) -> None:
    """One task after the other."""
    while True:
        await client.submit(computing.compute, pure=False)


async def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        say({"address": scheduler.address})
        async with Client(scheduler.address, asynchronous=True) as client:
            await client.wait_for_workers(1, timeout=PATIENCE_S)
            (worker,) = scheduler.workers
            tasks = [asyncio.create_task(keep_busy(client)) for _ in range(options.tasks)]
            async with rpc(worker) as asked:
                await pacing.measure(asked.identity, options.rate, options.seconds)
            for task in tasks:
                task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
