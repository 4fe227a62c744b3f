"""How much others of a shared machine slow it down: a fixed computation, timed on each CPU.

A virtual CPU shares its core with that of a neighbour, and computes at half its speed while that
one is busy. No counter in the guest says so, unlike of what `sampling.disturbance` looks for, but
the same loop takes longer.
"""

import os
import statistics
import time
from collections.abc import Callable

SAMPLES = 30
"""On each CPU, of 1 to 2 ms."""
LOOPS = 40_000
QUIET = 1.25
"""A machine that is slower than its best by less is quiet: a neighbour costs 1.75."""
TRIES = 3
REPETITIONS = 20
"""In all: a machine that stays slow does not become quiet by waiting."""


class Quiet:
    """Repeats what ran while the machine was slow.

    It looks right before and right after, at the speed of the CPUs and not at what was measured,
    so it prefers no result.
    """

    def __init__(self) -> None:
        self._best_s = float("inf")
        self._kept: list[float] = []
        self._repeated = 0
        self.slowness()

    def slowness(self) -> float:
        """How many times as long as at best the computation takes now, on the slowest CPU."""
        allowed = os.sched_getaffinity(0)
        medians: list[float] = []
        try:
            for cpu in allowed:
                os.sched_setaffinity(0, {cpu})
                medians.append(statistics.median(_sample() for _ in range(SAMPLES)))
        finally:
            os.sched_setaffinity(0, allowed)
        self._best_s = min(self._best_s, *medians)
        return max(medians) / self._best_s

    def run(self, measures: Callable[[int], None]) -> int:
        """Calls `measures` with 0, and again with 1 and 2 if the machine was slow.

        It does so a limited number of times in all. Returns the number of the call during which the
        machine was least slow.
        """
        slow: list[float] = []
        while True:
            before = self.slowness()
            measures(len(slow))
            slow.append(max(before, self.slowness()))
            if slow[-1] < QUIET or len(slow) == TRIES or self._repeated >= REPETITIONS:
                break
            self._repeated += 1
        self._kept.append(min(slow))
        return slow.index(min(slow))

    def __str__(self) -> str:
        slow = [it for it in self._kept if it >= QUIET]
        worst = f", by a factor of up to {max(slow):.2f}" if slow else ""
        return (
            f"{self._repeated} runs were repeated because the machine was slow before or after "
            f"them; it was slow beside {len(slow)} of the {len(self._kept)} that count{worst}"
        )


def _sample() -> float:
    start = time.perf_counter()
    total = 0
    for number in range(LOOPS):
        total += number & 3
    return time.perf_counter() - start
