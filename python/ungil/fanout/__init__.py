"""One function, many items, at once: ten thousand I/O-bound tasks at coroutine cost.

    from ungil.fanout import fanout

    for outcome in fanout(backup, hosts, timeout=30, retries=2):
        print(outcome.item, outcome.value if outcome.ok else outcome.exception)

`async def` functions run on an event loop, others in threads or green threads. In a program that
has its own event loop: `async with Fanout(...) as f: async for outcome in f.stream(fn, items)`.
"""

# typing and asyncio take longer to import than ten thousand tasks take to run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ungil._native import (
        Cancelled,
        Connecting,
        Connection,
        CutOff,
        Operation,
        Outcome,
        connect,
        connect_unix,
        sleep,
        wait_readable,
        wait_writable,
    )
    from ungil.fanout._backoff import Backoff
    from ungil.fanout._call import Outcomes, fanout, raise_for_failures
    from ungil.fanout._failures import Stopped
    from ungil.fanout._options import CommonOptions, Mode, Options
    from ungil.fanout._progress import Progress
    from ungil.fanout._stream import Fanout

__all__ = [
    "Backoff",
    "Cancelled",
    "CommonOptions",
    "Connecting",
    "Connection",
    "CutOff",
    "Fanout",
    "Mode",
    "Operation",
    "Options",
    "Outcome",
    "Outcomes",
    "Progress",
    "Stopped",
    "connect",
    "connect_unix",
    "fanout",
    "raise_for_failures",
    "sleep",
    "wait_readable",
    "wait_writable",
]

_HOME = {
    "Backoff": "ungil.fanout._backoff",
    "Cancelled": "ungil._native",
    "CommonOptions": "ungil.fanout._options",
    "Connecting": "ungil._native",
    "Connection": "ungil._native",
    "CutOff": "ungil._native",
    "Fanout": "ungil.fanout._stream",
    "Mode": "ungil.fanout._options",
    "Options": "ungil.fanout._options",
    "Operation": "ungil._native",
    "Outcome": "ungil._native",
    "Outcomes": "ungil.fanout._call",
    "Progress": "ungil.fanout._progress",
    "Stopped": "ungil.fanout._failures",
    "connect": "ungil._native",
    "connect_unix": "ungil._native",
    "fanout": "ungil.fanout._call",
    "raise_for_failures": "ungil.fanout._call",
    "sleep": "ungil._native",
    "wait_readable": "ungil._native",
    "wait_writable": "ungil._native",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(__import__(home, fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
