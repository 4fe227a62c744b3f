"""One thread releases and retakes the GIL as fast as Python can: writes to /dev/null.

No program is like this; it is the case in which any recorder of releases does worst.
The argument is the number of writes.
"""

import os

import work

WRITES = 2_000_000


def write(descriptor: int, writes: int) -> None:
    """Write a byte, again and again."""
    for _ in range(writes):
        os.write(descriptor, b"x")


if __name__ == "__main__":
    writes = work.count(WRITES)
    work.pin()
    descriptor = os.open(os.devnull, os.O_WRONLY)
    work.measure(lambda: write(descriptor, writes), releases=writes)
    os.close(descriptor)
