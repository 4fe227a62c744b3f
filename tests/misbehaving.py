"""A program: functions that do what no function should, run by a fan-out in one mode.

    python tests/misbehaving.py MODE

For each item it prints one line of JSON: what it was, the type of the value or of the exception,
whether it was abandoned. Between two that misbehave there is always one that does not. It is a
program of its own because green threads need a process that was patched before anything else.
"""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportAssignmentType=false
# (others' libraries have no types, and much here is wrong on purpose)

import sys

MODE = sys.argv[1]
if MODE == "green":
    from gevent import monkey

    monkey.patch_all()

import asyncio  # noqa: E402
import json  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from ungil.fanout import fanout, sleep  # noqa: E402

# What does not hang is done long before, on the busiest machine.
TIMEOUT_S = 2.0


class Unprintable:
    """Fails whatever is done with it."""

    def __repr__(self):
        raise ValueError("no repr")

    __str__ = __eq__ = __hash__ = __bool__ = __len__ = __reduce__ = __repr__


class UnprintableError(Exception):
    """An exception that cannot be printed."""

    __repr__ = __str__ = Unprintable.__repr__


class NotEvenAnError(BaseException):
    """What `except Exception` does not catch."""


def deeper(depth=0):
    """Never comes back."""
    return deeper(depth + 1)


def green_exit():
    """What gevent ends its threads with."""
    from gevent import GreenletExit

    raise GreenletExit


def sibling():
    """An item that starts fan-outs itself."""
    return [outcome.value for outcome in fanout(abs, [-1, -2], mode="threads")]


def raises(error):
    """As an expression."""
    raise error


DEEDS = {
    "ValueError": lambda: raises(ValueError("no")),
    "BaseException": lambda: raises(NotEvenAnError("no")),
    "SystemExit": lambda: sys.exit("bye"),
    "GeneratorExit": lambda: raises(GeneratorExit()),
    "StopIteration": lambda: raises(StopIteration("value")),
    "StopAsyncIteration": lambda: raises(StopAsyncIteration()),
    "CancelledError": lambda: raises(asyncio.CancelledError()),
    "TimeoutError": lambda: raises(TimeoutError("its own")),
    "MemoryError": lambda: bytearray(1 << 60),
    "RecursionError": deeper,
    "group": lambda: raises(ExceptionGroup("many", [ValueError(), KeyError()])),
    "unprintable error": lambda: raises(UnprintableError()),
    "unprintable value": Unprintable,
    "itself": lambda: act,
    "exception as a value": lambda: ValueError("not raised"),
    "generator": lambda: (number for number in range(3)),
    "lock": threading.Lock,
    "nothing": lambda: None,
}
if MODE == "green":
    DEEDS["GreenletExit"] = green_exit
if MODE in ("threads", "green"):
    DEEDS["fanout"] = sibling


async def act_later(deed):
    """The same for modes that run coroutines."""
    if deed == "hangs":
        try:
            await (sleep if MODE == "lean" else asyncio.sleep)(3600)
        finally:
            print(json.dumps(["cleaned up"]))
    return act(deed)


def act(deed):
    """Does it."""
    if deed == "hangs":
        time.sleep(3600)
    return DEEDS[deed]() if deed != "fine" else "fine"


def main():
    """One fan-out of all of them."""
    deeds = [deed for bad in [*DEEDS, "hangs"] for deed in (bad, "fine")]
    fn = act_later if MODE in ("asyncio", "lean") else act
    for outcome in fanout(fn, deeds, mode=MODE, timeout=TIMEOUT_S, limit=4):
        if outcome.ok:
            print(json.dumps([outcome.item, "value", type(outcome.value).__name__]))
        else:
            kind = type(outcome.exception).__name__
            print(json.dumps([outcome.item, "exception", kind, outcome.abandoned]))


if __name__ == "__main__":
    main()
