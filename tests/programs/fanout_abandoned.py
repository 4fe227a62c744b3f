"""A fan-out whose threads never end: the program does.

fanout_abandoned.py fanout|Fanout
"""

import asyncio
import sys
import threading

from ungil.fanout import Fanout, fanout


def hangs(_):
    threading.Event().wait()


async def stream():
    async with Fanout(timeout=0.05) as f:
        return [outcome async for outcome in f.stream(hangs, range(3))]


if sys.argv[1] == "fanout":
    outcomes = list(fanout(hangs, range(3), timeout=0.05))
else:
    outcomes = asyncio.run(stream())
print([outcome.abandoned for outcome in outcomes])
