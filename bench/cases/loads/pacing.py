"""A load of one question at a time: each is asked at its time, or after the answer before it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from says import begins, ends, say

# Not measured, for the program to fall into its ways.
WARM_UP_S = 0.7


class Paced:
    """Questions at fixed times, and how long their answers took.

    A delay counts from the sending until this process has the answer. Its own part of that is to
    wake up; `own_ms` tells how late it woke up for the next question.
    """

    def __init__(self, rate: float) -> None:
        """So many a second, if they are answered in time."""
        self._period_s = 1 / rate
        self.delays_ms: list[float] = []
        self.own_ms: list[float] = []

    async def run(self, ask: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Ask for so long."""
        due_s = time.perf_counter()
        end_s = due_s + seconds
        while due_s < end_s:
            left_s = due_s - time.perf_counter()
            if left_s > 0:
                await asyncio.sleep(left_s)
                self.own_ms.append((time.perf_counter() - due_s) * 1e3)
            sent_s = time.perf_counter()
            await ask()
            self.delays_ms.append((time.perf_counter() - sent_s) * 1e3)
            due_s = max(due_s + self._period_s, time.perf_counter())


async def measure(ask: Callable[[], Awaitable[object]], rate: float, seconds: float) -> None:
    """Warm up, measure, and tell the benchmark."""
    await Paced(rate).run(ask, WARM_UP_S)
    paced = Paced(rate)
    begins()
    await paced.run(ask, seconds)
    ends()
    say({"late_ms": paced.delays_ms, "own_ms": paced.own_ms})


def measure_blocking(ask: Callable[[], object], rate: float, seconds: float) -> None:
    """The same, where a question blocks."""

    async def asked() -> None:
        ask()

    asyncio.run(measure(asked, rate, seconds))
