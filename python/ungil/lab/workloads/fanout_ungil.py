"""ungil.fanout, LIMIT at once (0: `limit="auto"`): see fanout_work.py.

A way is a mode, or one and a word: `lean` awaits ungil's own sleep and connections; `asyncio` and
`asyncio protocol` await what the peer in fanout_asyncio.py does (its sleep or streams, its
protocol) on uvloop, `asyncio-stock` as if uvloop were not installed; `asyncio own` awaits ungil's
own in asyncio's event loop; `stream` is Fanout.stream in a stock event loop of the caller's;
`threads` and `green` call functions that block, the latter after gevent's monkey patching.
"""

import sys

if sys.argv[1] == "green":
    from gevent import monkey

    monkey.patch_all()

from fanout_work import QUESTION, Work, ask, host, main

from ungil.fanout import fanout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def count(work: Work, mode: str, function: "Callable[[int], Any]") -> int:
    """How many of all outcomes are good; none is kept."""
    limit = work.limit or "auto"
    items = (item for item in range(work.items))
    outcomes = fanout(function, items, limit=limit, mode=mode)
    return sum(1 for outcome in outcomes if outcome.ok)


def own(mode: str) -> "Callable[[Work], int]":
    """With tasks that await ungil's own primitives."""

    def run(work: Work) -> int:
        rtt_s, port = work.rtt_s, work.port
        if port:
            from ungil.fanout import connect
        else:
            from ungil.fanout import sleep

        async def asleep(item: int) -> int:
            await sleep(rtt_s)
            return item

        async def talk(item: int) -> bytes:
            async with connect(host(item), port) as connection:
                await connection.write(QUESTION)
                return await connection.read_until(b"\n")

        return count(work, mode, talk if port else asleep)

    return run


def asyncio_(kind: str, stock: bool) -> "Callable[[Work], int]":
    """With the tasks of the peer on plain asyncio."""

    def run(work: Work) -> int:
        if stock:
            sys.modules["uvloop"] = None  # type: ignore[assignment]
        return count(work, "asyncio", peers_task(kind, work))

    return run


def peers_task(kind: str, work: Work) -> "Callable[[int], Any]":
    """The very coroutine function that asyncio.gather is given."""
    from functools import partial

    import fanout_asyncio

    return partial(getattr(fanout_asyncio, kind if work.port else "sleep"), work)


def stream(work: Work) -> int:
    """With the tasks of the peer, in a loop that is there already; outcomes as they come."""
    import asyncio

    from ungil.fanout import Fanout

    async def everything() -> int:
        done, items = 0, (item for item in range(work.items))
        async with Fanout(limit=work.limit or "auto") as fan:
            async for outcome in fan.stream(peers_task("streams", work), items):
                done += outcome.ok
        return done

    return asyncio.run(everything())


def sync(mode: str) -> "Callable[[Work], int]":
    """With functions that block."""

    def run(work: Work) -> int:
        import socket
        import time

        rtt_s, port = work.rtt_s, work.port

        def asleep(item: int) -> int:
            time.sleep(rtt_s)
            return item

        def talk(item: int) -> bytes:
            return ask(socket, host(item), port)

        return count(work, mode, talk if port else asleep)

    return run


if __name__ == "__main__":
    main(
        {
            "lean": own("lean"),
            "asyncio": asyncio_("streams", stock=False),
            "asyncio protocol": asyncio_("protocol", stock=False),
            "asyncio-stock": asyncio_("streams", stock=True),
            "asyncio own": own("asyncio"),
            "stream": stream,
            "threads": sync("threads"),
            "green": sync("green"),
        }
    )
