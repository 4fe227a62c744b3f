"""How many items may run at once at most where `limit="auto"`: what the system has for them."""

import os
import resource

# The loop's own descriptors, and what the program opens meanwhile.
_SPARE_DESCRIPTORS = 64

# A coroutine with a connection; a thread with the part of its stack that it touches.
_BYTES_OF_A_COROUTINE = 16 << 10
_BYTES_OF_A_THREAD = 128 << 10

# Each thread that waits for the GIL wakes every 5 ms to ask for it. Ten thousand that wake in the
# same second were seen to take anything between 4 and 160 s of CPU time (bench/fanout.py).
_THREADS = 2_000

_ENDLESS = 1_000_000


def ceiling(*, threads: bool) -> tuple[int, str]:
    """How many, at least 1, and what would not be enough for more.

    Each is taken to need one descriptor, and half of the free memory to be for them all. A soft
    limit of descriptors is left where it is: beyond 1,024 `select()` overwrites memory.
    """
    size, what = (
        (_BYTES_OF_A_THREAD, "threads") if threads else (_BYTES_OF_A_COROUTINE, "coroutines")
    )
    found = [(_ENDLESS, "nothing on this system")]
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        found.append((soft - _open() - _SPARE_DESCRIPTORS, f"{soft} file descriptors (ulimit -n)"))
    if (free := _free_memory()) is not None:
        found.append((free // 2 // size, f"{free >> 20} MB of free memory for {what}"))
    if threads:
        found.append((_THREADS, f"{_THREADS:,} threads; more would only contend for the GIL"))
    if threads and (left := _threads_left()) is not None:
        found.append((left - _SPARE_DESCRIPTORS, f"{left} more threads (pids.max)"))
    most, why = min(found)
    return max(1, most), why


def _open() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _free_memory() -> int | None:
    """Bytes: of the machine, or of the container, if that has less."""
    free = None
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
    most, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if most is not None and used is not None:
        left = max(0, most - used)
        free = left if free is None else min(free, left)
    return free


def _threads_left() -> int | None:
    most, used = _number("/sys/fs/cgroup/pids.max"), _number("/sys/fs/cgroup/pids.current")
    return None if most is None or used is None else max(0, most - used)


def _number(path: str) -> int | None:
    for line in _lines(path):
        if line.strip().isdigit():
            return int(line)
    return None


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.readlines()
    except OSError:
        return []
