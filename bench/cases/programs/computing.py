"""The computing part of the gallery's programs: pure Python, counted where a benchmark can read it.

A call of `compute` is a fixed amount of work, under every scheduler. How much of it is done stands
in the file that `COMPUTED` names: 64-bit numbers, of which each computing thread has one of its own
from the third on. The first two say what the program ran under: its switch interval in nanoseconds
and the number of its policy.
"""

import ctypes
import itertools
import mmap
import os
import sys
import threading
from pathlib import Path

from one_cpu_thread import step

# A call of `compute`: some 50 ms, alone.
CALLS = 40_000
# Counted together: some 1 ms.
COUNTED = 1_000
# Of the file. A server that starts a thread for each request does not use them up.
NUMBERS = 8_192


def _shared() -> memoryview:
    """The numbers in the file; in nobody's, if none is named."""
    named = os.environ.get("COMPUTED")
    if named is None:
        return memoryview(mmap.mmap(-1, NUMBERS * 8)).cast("Q")
    with Path(named).open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), NUMBERS * 8)).cast("Q")


_numbers = _shared()
_next = itertools.count(2)
_own = threading.local()


def _place() -> int:
    """The number of the calling thread; its first call notes what it runs under."""
    try:
        return _own.place
    except AttributeError:
        _own.place = next(_next)
        _numbers[0] = round(sys.getswitchinterval() * 1e9)
        _numbers[1] = _policy()
        return _own.place


def _policy() -> int:
    """The number of ungil's policy; 0, which is `stock`, without the hook."""
    try:
        return ctypes.CDLL(None).ungil_policy_v1(ctypes.byref(ctypes.c_uint64()))
    except AttributeError:
        return 0


def compute(calls: int = CALLS) -> int:
    """Call a small function so many times, and count."""
    place, total = _place(), 0
    for _ in range(calls // COUNTED):
        for _ in range(COUNTED):
            total = step(total)
        _numbers[place] += COUNTED
    return total


def compute_for_ever() -> None:
    """As a thread does that has no end of work."""
    while True:
        compute()


def start(threads: int) -> None:
    """Start threads that compute until the process ends."""
    for _ in range(threads):
        threading.Thread(target=compute_for_ever, daemon=True).start()
