"""asyncio without anything else, or on uvloop, in its documented forms: see fanout_work.py.

A way is `LOOP HOW TASK`: LOOP is `asyncio` or `uvloop`; HOW is `gather`, or `group` for a TaskGroup
whose tasks wait for a Semaphore of LIMIT; TASK is `sleep`, `streams` (what is documented for
clients), or `protocol` (quicker, and twice as long).
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import product

from fanout_work import QUESTION, Work, host, main

Task = Callable[[Work, int], Awaitable[object]]


async def sleep(work: Work, item: int) -> int:
    """Asleep."""
    await asyncio.sleep(work.rtt_s)
    return item


async def streams(work: Work, item: int) -> bytes:
    """A device's answer, by asyncio's streams."""
    reader, writer = await asyncio.open_connection(host(item), work.port)
    try:
        writer.write(QUESTION)
        return await reader.readuntil(b"\n")
    finally:
        writer.close()


class Conversation(asyncio.Protocol):
    """One question, one answer."""

    def __init__(self, answer: "asyncio.Future[bytes]") -> None:
        """`answer` is told."""
        self._answer = answer
        self._heard = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Asks."""
        self._transport = transport
        transport.write(QUESTION)

    def data_received(self, data: bytes) -> None:
        """Ends with the line."""
        assert self._transport is not None
        self._heard += data
        if self._heard.endswith(b"\n"):
            self._answer.set_result(self._heard)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Too early, if there is no answer."""
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("ended its answer early"))


async def protocol(work: Work, item: int) -> bytes:
    """A device's answer, by a protocol."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()
    await loop.create_connection(lambda: Conversation(answer), host(item), work.port)
    return await answer


async def gather(work: Work, task: Task) -> int:
    """All at once."""
    return len(await asyncio.gather(*(task(work, item) for item in range(work.items))))


async def group(work: Work, task: Task) -> int:
    """All started at once, LIMIT of them not waiting for the others."""
    semaphore = asyncio.Semaphore(work.limit)

    async def limited(item: int) -> object:
        async with semaphore:
            return await task(work, item)

    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(limited(item)) for item in range(work.items)]
    return sum(1 for one in started if one.exception() is None)


def way(loop: str, how: Callable[[Work, Task], Awaitable[int]], task: Task):
    """In an event loop of its own."""

    def run(work: Work) -> int:
        factory = None
        if loop == "uvloop":
            import uvloop

            factory = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(how(work, task))  # type: ignore[arg-type]

    return run


if __name__ == "__main__":
    combined = product(("asyncio", "uvloop"), (gather, group), (sleep, streams, protocol))
    main(
        {
            f"{loop} {how.__name__} {task.__name__}": way(loop, how, task)
            for loop, how, task in combined
        }
    )
