"""What `ungil.fanout`'s functions wait for, where asyncio drives the coroutine."""

import asyncio
from collections.abc import Callable
from typing import Any

from ungil._native import Operation


async def drive(operation: "Operation[Any]") -> Any:
    """Runs an operation to its end, and gives its value."""
    try:
        return await _drive(operation)
    except BaseException:
        # Its traceback refers to the operation, and may live long.
        operation.close()
        raise


async def _drive(operation: "Operation[Any]") -> Any:
    loop = asyncio.get_running_loop()
    while True:
        wanted, what = operation._advance()  # pyright: ignore[reportPrivateUsage]
        match wanted:
            case None:
                return what
            case "sleep":
                await asyncio.sleep(what)
            case "read":
                await _ready(loop, loop.add_reader, loop.remove_reader, what)
            case "write":
                await _ready(loop, loop.add_writer, loop.remove_writer, what)
            case "call":
                await loop.run_in_executor(None, what)


async def _ready(
    loop: asyncio.AbstractEventLoop,
    add: Callable[..., None],
    remove: Callable[[int], object],
    descriptor: int,
) -> None:
    ready = loop.create_future()
    add(descriptor, _wake, ready)
    try:
        await ready
    finally:
        remove(descriptor)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
