"""Connections of `ungil.fanout`, on both kinds of event loop."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fanout_connections.servers import Run, servers

from ungil.fanout import Outcome, fanout


@pytest.fixture(params=["lean", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs an `async def` for items, in one mode after the other."""

    def run(fn: Callable[[Any], Any], items: Any = (1,), **options: Any) -> list[Outcome]:
        return list(fanout(fn, items, mode=request.param, **options))

    return run


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Starts a server. Gives its address."""
    with servers() as start:
        yield start
