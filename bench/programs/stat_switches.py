"""One thread releases and retakes the GIL around `os.stat`, as a walk over a file tree does.

The argument is the number of calls.
"""

import os

import work

CALLS = 600_000


def look(calls: int) -> None:
    """Look at the root folder, again and again."""
    for _ in range(calls):
        os.stat("/")  # noqa: PTH116  Path.stat does more.


if __name__ == "__main__":
    calls = work.count(CALLS)
    work.pin()
    work.measure(lambda: look(calls), releases=calls)
