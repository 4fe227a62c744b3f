"""Fan-outs on the loop without asyncio, for its own tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from ungil._native import Dispatcher, Lean
from ungil.fanout import Outcome, fanout


def lean(fn: Callable[[Any], Any], items: Iterable[Any], **options: Any) -> list[Outcome]:
    return list(fanout(fn, items, mode="lean", **options))


def values(outcomes: Iterable[Outcome]) -> list[Any]:
    return [outcome.unwrap() for outcome in outcomes]


def driven(fn: Callable[[Any], Any], items: Iterable[Any]) -> list[Outcome]:
    """As `lean`, for functions that are no `async def`."""
    dispatcher = Dispatcher(iter(items), limit=100, window=100, in_order=True)
    loop = Lean(fn, dispatcher, None)
    outcomes: list[Outcome] = []
    while not dispatcher.ended or dispatcher.ready:
        loop.advance()
        while (outcome := dispatcher.take()) is not None:
            outcomes.append(outcome)
    return outcomes


class coroutine:
    """Awaitable, and no coroutine whatever it is called."""

    def __init__(self, *yields: object) -> None:
        self.yields = yields

    def __await__(self) -> Generator[Any, Any, str]:
        yield from self.yields
        return "done"
