"""Asks a service many times, as somebody does who has just read the README.

    services_client.py HOW WHAT LIMIT ITEMS PORT

HOW is `fanout`, `grouped` (fanout with one group), `gather` (asyncio.gather behind a semaphore),
`aiometer` or `pool` (ThreadPoolExecutor); LIMIT a number, or `auto`. WHAT is `get` (a GET request
with asyncio's streams), `hanging` (the same, within a second), `urllib3` (in threads), `sleep` (20
ms of time.sleep), or `asleep` (50 ms of asyncio.sleep). Who is turned away by 429 or a reset tries
again, after what Retry-After says. Prints a line of JSON: seconds, how many items have failed, how
many ran at once at most, and the report.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

RETRIES = 50
HANGS_S = 1.0
HOW, WHAT, LIMIT = sys.argv[1:4]
ITEMS, PORT = int(sys.argv[4]), int(sys.argv[5])
REQUEST = b"GET /item HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class TooMany(Exception):
    """An answer 429, as HTTP libraries raise it."""

    def __init__(self, headers: dict[str, str]) -> None:
        """Of the answer."""
        super().__init__("429")
        self.status, self.headers = 429, headers


async def get(_item: int) -> int:
    """A request with a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    try:
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        if status == 429:
            raise TooMany(headers)
        return len(await reader.readexactly(int(headers["Content-Length"])))
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("cut off") from error
    finally:
        writer.close()


async def asleep(_item: int) -> None:
    """50 ms."""
    await asyncio.sleep(0.05)


def sleep(_item: int) -> None:
    """20 ms."""
    time.sleep(0.02)


def urllib3_get() -> Callable[[int], int]:
    """A request of urllib3, with a pool that has a connection for each thread."""
    import urllib3

    pool = urllib3.PoolManager(maxsize=2000)
    return lambda _item: len(pool.request("GET", f"http://127.0.0.1:{PORT}/item").data)


async def persistent(fn: Callable[[int], Any], timeout: float | None, item: int) -> Any:
    """Tries again what was turned away."""
    for attempt in range(RETRIES + 1):
        try:
            async with asyncio.timeout(timeout):
                return await fn(item)
        except TooMany as error:
            await asyncio.sleep(float(error.headers["Retry-After"]))
        except ConnectionError:
            await asyncio.sleep(min(0.1 * 2**attempt, 30.0))
    raise ConnectionError("turned away too often")


def by_fanout(fn: Callable[[int], Any]) -> dict[str, Any]:
    """All items through `fanout`."""
    from ungil.fanout import fanout

    limit: Any = LIMIT if LIMIT == "auto" else int(LIMIT)
    hangs = WHAT == "hanging"
    outcomes = fanout(
        fn,
        range(ITEMS),
        limit=limit,
        timeout=HANGS_S if hangs else None,
        retries=0 if hangs else RETRIES,
        group=(lambda _item: "service") if HOW == "grouped" else None,
    )
    failed = sum(not outcome.ok for outcome in outcomes)
    most = outcomes._dispatcher.counts[3]  # pyright: ignore[reportPrivateUsage]
    return {"failed": failed, "most": most, "report": outcomes.report}


async def by_peer(fn: Callable[[int], Any]) -> dict[str, Any]:
    """All items through gather or aiometer."""
    work = partial(persistent, fn, HANGS_S if WHAT == "hanging" else None)
    limit = None if LIMIT == "auto" else int(LIMIT)
    done: list[Any]
    if HOW == "aiometer":
        import aiometer

        async def one(item: int) -> Any:
            try:
                return await work(item)
            except Exception as error:
                return error

        calls = [partial(one, item) for item in range(ITEMS)]
        done = await aiometer.run_all(calls, max_at_once=limit)
    elif limit is None:
        done = await asyncio.gather(*map(work, range(ITEMS)), return_exceptions=True)
    else:
        room = asyncio.Semaphore(limit)

        async def one_of_few(item: int) -> Any:
            async with room:
                return await work(item)

        done = await asyncio.gather(*map(one_of_few, range(ITEMS)), return_exceptions=True)
    return {"failed": sum(isinstance(it, Exception) for it in done), "most": limit or ITEMS}


def by_pool(fn: Callable[[int], Any]) -> dict[str, Any]:
    """All items in a pool of threads."""
    with ThreadPoolExecutor(int(LIMIT)) as pool:
        done = list(pool.map(fn, range(ITEMS)))
    return {"failed": ITEMS - len(done), "most": int(LIMIT)}


def main() -> None:
    """As in the arguments."""
    fn: Any = {"get": get, "hanging": get, "sleep": sleep, "asleep": asleep}.get(WHAT)
    fn = urllib3_get() if fn is None else fn
    if HOW in ("fanout", "grouped"):
        run: Callable[[], dict[str, Any]] = partial(by_fanout, fn)
    elif HOW == "pool":
        run = partial(by_pool, fn)
    else:
        run = lambda: asyncio.run(by_peer(fn))  # noqa: E731
    begun = time.monotonic()
    came = run()
    print(json.dumps({"seconds": time.monotonic() - begun, **came}))


if __name__ == "__main__":
    main()
