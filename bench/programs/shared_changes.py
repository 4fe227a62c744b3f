"""A process publishes something, and others notice: how long after the write.

    shared_changes.py WAY READERS CHANGES

What is published is the time of the write, by the clock that all processes have. When all readers
have seen it, the writer rests for 1 to 3 ms, in which they go to sleep or poll, and writes again.
The ways:

    wait_for            `settings.wait_for("at", seen)` of a shared dict
    wait_for_change     `share.wait_for_change(settings, version)`, and then a look at the dict
    await_for           `await settings.await_for("at", seen)` in a task of asyncio
    Manager, polled     a dict of multiprocessing.Manager, looked at each millisecond
    mp.Event            an event of multiprocessing that tells of a multiprocessing.Value

Prints `p50_us`, `p99_us` and `max_us` from before the write to the reader's look at its clock, of
all readers, and `cpu_percent`: the CPU time of everybody but the writer, of one processor.
"""

import asyncio
import functools
import multiprocessing
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import work

FORK = multiprocessing.get_context("fork")
REST_S = (1e-3, 3e-3)
POLL_S = 1e-3
# What a reader has seen before the first write, and what ends it.
NOTHING, END = 0, -1

# What publishes a time, what is done when all have seen it, and what waits for another time.
Way = tuple[Callable[[int], None], Callable[[], None], Callable[[int], int]]


def nothing() -> None:
    """Most ways need nothing between two writes."""


def published() -> tuple[Any, Callable[[int], None]]:
    """A shared dict, and what publishes in it."""
    from ungil import share

    settings = share.Heap(max_size=1 << 24).share({"at": NOTHING})

    def publish(at: int) -> None:
        settings["at"] = at

    return settings, publish


def shared(way: str) -> Way:
    """Readers that wait as threads do."""
    from ungil import share

    settings, publish = published()

    def wait_for_change(seen: int) -> int:
        while True:
            version = share.version(settings)
            if (at := settings["at"]) != seen:
                return at
            share.wait_for_change(settings, version)

    if way == "wait_for_change":
        return publish, nothing, wait_for_change
    return publish, nothing, lambda seen: settings.wait_for("at", seen)


def awaited() -> tuple[Callable[[int], None], Callable[[int, int], None]]:
    """What publishes, and a reader that is a task of asyncio."""
    settings, publish = published()

    async def follow(told: int, late: list[int]) -> None:
        os.write(told, b"x")
        at = NOTHING
        while (at := await settings.await_for("at", at)) != END:
            late.append(time.perf_counter_ns() - at)
            os.write(told, b"x")

    def read(told: int, number: int) -> None:
        late: list[int] = []
        asyncio.run(follow(told, late))
        keep(late, number)

    return publish, read


def managed(manager: Any) -> Way:
    """A dict of a manager, which has to be asked."""
    settings = manager.dict(at=NOTHING)

    def publish(at: int) -> None:
        settings["at"] = at

    def wait(seen: int) -> int:
        while (at := settings["at"]) == seen:
            time.sleep(POLL_S)
        return at

    return publish, nothing, wait


def event() -> Way:
    """A number with a lock, and an event."""
    number, is_new = FORK.Value("q", NOTHING), FORK.Event()

    def publish(at: int) -> None:
        number.value = at
        is_new.set()

    def wait(seen: int) -> int:
        while (at := number.value) == seen:
            is_new.wait()
        return at

    # Until it is cleared, nobody sleeps at it.
    return publish, is_new.clear, wait


FILES: list[int] = []


def keep(late: list[int], number: int) -> None:
    """Leaves what a reader has measured to the writer."""
    os.write(FILES[number], b"".join(one.to_bytes(8, "little") for one in late))


def follow(wait: Callable[[int], int], told: int, number: int) -> None:
    """A reader."""
    late: list[int] = []
    os.write(told, b"x")
    at = NOTHING
    while (at := wait(at)) != END:
        late.append(time.perf_counter_ns() - at)
        os.write(told, b"x")
    keep(late, number)


def hear(heard: int, readers: int) -> None:
    """Waits until all readers have told that they have begun, or have seen it."""
    while readers > 0:
        readers -= len(os.read(heard, readers))


def main() -> None:
    """Measures."""
    way, readers, changes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    manager = FORK.Manager() if way.startswith("Manager") else None
    heard, told = os.pipe()
    FILES.extend(os.memfd_create(f"reader {number}") for number in range(readers))
    cleared = nothing
    read: Callable[[int, int], None]
    if way == "await_for":
        publish, read = awaited()
    else:
        made = managed(manager) if manager else event() if way == "mp.Event" else shared(way)
        publish, cleared, wait = made
        read = functools.partial(follow, wait)
    crew = [FORK.Process(target=read, args=(told, number)) for number in range(readers)]
    for process in crew:
        process.start()
    hear(heard, readers)
    rests = random.Random(0)
    begun = time.perf_counter()
    for _ in range(changes):
        time.sleep(rests.uniform(*REST_S))
        publish(time.perf_counter_ns())
        hear(heard, readers)
        cleared()
    wall_s = time.perf_counter() - begun
    publish(END)
    for process in crew:
        process.join()
    if manager is not None:
        manager.shutdown()
    late_ns: list[int] = []
    for file in FILES:
        data = os.pread(file, 8 * changes, 0)
        late_ns += (int.from_bytes(data[n : n + 8], "little") for n in range(0, len(data), 8))
    if len(late_ns) != readers * changes:
        raise RuntimeError(f"{len(late_ns)} changes were noticed of {readers * changes}")
    late_ns.sort()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    work.say(
        {
            "p50_us": late_ns[len(late_ns) // 2] / 1e3,
            "p99_us": late_ns[len(late_ns) * 99 // 100] / 1e3,
            "max_us": late_ns[-1] / 1e3,
            "cpu_percent": 100 * (used.ru_utime + used.ru_stime) / wall_s,
        }
    )


if __name__ == "__main__":
    main()
