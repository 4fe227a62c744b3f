"""A suite in which every test keeps the GIL for 60 ms: run by `bench/plugin.py`, many times."""

from __future__ import annotations

import asyncio
import ctypes
import re
import threading
import time
from collections.abc import Callable

import pytest

LIBRARY = ctypes.PyDLL(None)  # its functions keep the GIL
HELD_S = 0.06


def calibrated(call: Callable[[int], object], size: int) -> Callable[[], object]:
    """`call` of a size that takes the processor for `HELD_S` or a little longer, at any time."""

    def cost(size: int) -> float:
        begun = time.thread_time()
        call(size)
        return time.thread_time() - begun

    while min(cost(size) for _ in range(3)) < HELD_S:
        size = size * 5 // 4 + 1
    return lambda: call(size)


def matches(size: int) -> object:
    """A regular expression that looks at the text from each of its places."""
    return re.search("a*b", "a" * size)


held_by_sum = calibrated(lambda size: sum(range(size)), 100_000)
held_by_match = calibrated(matches, 500)


def held_by_sleep() -> None:
    """Sleeps in C without letting go."""
    LIBRARY.usleep(int(HELD_S * 1e6))


HOLDS = [held_by_sum, held_by_match, held_by_sleep]
NAMES = ["sum", "match", "sleep"]


@pytest.mark.gil(max_hold="20ms")
@pytest.mark.parametrize("hold", HOLDS, ids=NAMES)
def test_main_thread(hold: Callable[[], object]) -> None:
    hold()


@pytest.mark.gil(max_hold="20ms")
@pytest.mark.parametrize("hold", HOLDS, ids=NAMES)
def test_other_thread(hold: Callable[[], object]) -> None:
    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()


@pytest.mark.gil(max_hold="20ms")
@pytest.mark.parametrize("hold", HOLDS, ids=NAMES)
def test_event_loop(hold: Callable[[], object]) -> None:
    async def work() -> None:
        await asyncio.sleep(0.001)
        hold()

    asyncio.run(work())
