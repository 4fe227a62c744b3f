"""One thread releases and retakes the GIL around reads of one byte each from /dev/zero.

The argument is the number of reads.
"""

import os

import work

READS = 2_000_000


def read(descriptor: int, reads: int) -> None:
    """Read a byte, again and again."""
    for _ in range(reads):
        os.read(descriptor, 1)


if __name__ == "__main__":
    reads = work.count(READS)
    work.pin()
    descriptor = os.open("/dev/zero", os.O_RDONLY)
    work.measure(lambda: read(descriptor, reads), releases=reads)
    os.close(descriptor)
