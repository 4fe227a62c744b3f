"""A fan-out of coroutines that says which items run, and what becomes of them.

fanout_interrupted.py lean|asyncio|uvloop call|stream
"""

import asyncio
import sys

loop, way = sys.argv[1:]
if loop == "asyncio":
    sys.modules["uvloop"] = None

from ungil.fanout import Fanout, fanout, sleep  # noqa: E402

mode = "lean" if loop == "lean" else "asyncio"


async def work(item):
    print("begins", item, flush=True)
    try:
        await sleep(1000)
    finally:
        await sleep(0.01)
        print("cleaned up", item, flush=True)


def call():
    for outcome in fanout(work, range(100), limit=3, mode=mode, progress=lambda _: None):
        print("came", outcome, flush=True)


async def stream():
    async with Fanout(limit=3, mode=mode) as f:
        async for outcome in f.stream(work, range(100)):
            print("came", outcome, flush=True)


try:
    if way == "call":
        call()
    else:
        asyncio.run(stream())
except KeyboardInterrupt:
    print("interrupted", flush=True)
