"""A suite whose code keeps no limit waiting: run by `bench/plugin.py`, many times.

Each thing is tested twice: by the plugin's limits, and by a clock on the wall, as people do it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
import time
from collections.abc import Callable

import pytest

LIBRARY = ctypes.PyDLL(None)  # its functions keep the GIL
LIMIT_S = 0.02


def bytecode() -> None:
    """Computes for 30 ms, and lets go of the GIL whenever it is asked."""
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass


def sums() -> None:
    """Some milliseconds in C without letting go, three times."""
    for _ in range(3):
        sum(range(80_000))


def encodes() -> None:
    """Some milliseconds in another C function."""
    json.dumps([[number, str(number)] for number in range(5_000)])


def sleeps_with_it() -> None:
    """Sleeps for 5 ms with the GIL."""
    LIBRARY.usleep(5_000)


def sleeps() -> None:
    """Sleeps for 5 ms without it."""
    time.sleep(0.005)


def shares() -> None:
    """Two threads that compute, and one that wants to go on every now and then."""
    threads = [threading.Thread(target=bytecode) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        time.sleep(0.001)
    for thread in threads:
        thread.join()


def loops() -> None:
    """An event loop with two tasks."""

    async def task() -> None:
        for _ in range(3):
            await asyncio.sleep(0.001)
            sum(range(50_000))

    async def both() -> None:
        await asyncio.gather(task(), task())

    asyncio.run(both())


SHORT = [sums, encodes, sleeps_with_it, sleeps]


@pytest.mark.gil(max_hold="20ms", max_wait="100ms")
@pytest.mark.parametrize("work", [bytecode, *SHORT, shares, loops])
def test_limits(work: Callable[[], None]) -> None:
    work()


@pytest.mark.parametrize("work", SHORT)
def test_wall_clock(work: Callable[[], None]) -> None:
    begun = time.perf_counter()
    work()
    # Some 8 ms, on a machine that does nothing else.
    assert time.perf_counter() - begun < LIMIT_S
