"""One thread computes: function calls and arithmetic in pure Python.

It never releases the GIL. The argument is the number of function calls.
"""

import work

CALLS = 600_000


def step(total: int) -> int:
    """Twenty rounds of arithmetic, so that calls are as frequent as in ordinary code."""
    for number in range(20):
        total = (total * 31 + number) & 0xFFFF
    return total


def compute(calls: int) -> None:
    """Call `step` a fixed number of times."""
    total = 0
    for _ in range(calls):
        total = step(total)


if __name__ == "__main__":
    calls = work.count(CALLS)
    work.pin()
    work.measure(lambda: compute(calls), releases=0)
