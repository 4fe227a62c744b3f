"""Arrays go to other processes, are read by many, and are added to.

    shared_array.py handed WAY BYTES SECONDS
    shared_array.py read WAY BYTES READERS
    shared_array.py added WAY SECONDS

`handed`: one process hands something to another, which looks at its first item and answers; prints
`round_trip_us`, the median of one. The ways:

    pointer          a number, through a shared deque and semaphores
    ungil            one of four arrays of a heap, through the same; looked at by numpy
    ungil, copied    the same of an ordinary array, which is copied into the heap each time
    Pipe, number     a number, through two pipes of multiprocessing
    Pipe             an array, which is pickled
    mp.Queue         an array, through two queues of multiprocessing
    shared_memory    the name of one of four blocks, through pipes; attached to by each receiver
    ray              one of four arrays in the store of Ray, to an actor

`read`: so many forked processes sum up one array, `ungil` in a heap or `Pipe` of their own, sent to
each. They have read a small one before, so that what a process needs by itself is not counted.
Prints megabytes (10**6 bytes): `array`; `before` and `after`, PSS of all processes before and
after the reading; `rss`, the largest peak RSS of a reader.

`added`: a number in an array is added to; prints `add_ns`. The ways: `numpy` (an ordinary array),
`ungil view` (the same of shared memory: adds of two processes can be lost), `ungil` (`add`),
`mp.Array` (with its lock).
"""

import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import numpy as np
import work
from shared_subjects import FORK
from shared_table import megabytes

COUNT = 4
# Round trips that are not counted, and those that are at least.
WARM_UP, LEAST = 20, 10

# What sends number N and returns the answer, what receives and answers, what ends it.
Channel = tuple[Callable[[int], object], Callable[[], None], Callable[[], None]]


def data(size: int) -> "Any":
    """Arrays whose first items are their numbers."""
    return [np.full(size // 8, number, "f8") for number in range(COUNT)]


def ungil(way: str, size: int) -> Channel:
    """A deque in each direction, and what tells that there is something in it."""
    from ungil import share

    root = share.Heap(max_size=1 << 30).root
    for name in ("there", "back"):
        root[name], root[f"{name} is"] = deque(), share.Semaphore(0)
    there, there_is, back, back_is = (
        root[name] for name in ("there", "there is", "back", "back is")
    )
    plain = data(size)
    root["arrays"] = [share.array(one) for one in plain]
    arrays = list(root["arrays"])

    def given(number: int) -> object:
        if way == "pointer":
            return number % COUNT
        return arrays[number % COUNT] if way == "ungil" else share.array(plain[number % COUNT])

    def send(number: int) -> object:
        there.append(given(number))
        there_is.release()
        back_is.acquire()
        return back.popleft()

    def receive() -> None:
        there_is.acquire()
        taken = there.popleft()
        back.append(taken if way == "pointer" else float(np.asarray(taken)[0]))
        back_is.release()

    return send, receive, lambda: None


def pipes(way: str, size: int) -> Channel:
    """A pipe in each direction."""
    ours, theirs = FORK.Pipe()
    plain = data(size)
    blocks = []
    if way == "shared_memory":
        blocks = [shared_memory.SharedMemory(create=True, size=size) for _ in range(COUNT)]
        for number, block in enumerate(blocks):
            np.ndarray(1, "f8", block.buf)[:] = number

    def send(number: int) -> object:
        number %= COUNT
        if way == "Pipe":
            ours.send(plain[number])
        else:
            ours.send(blocks[number].name if blocks else number)
        return ours.recv()

    def receive() -> None:
        taken = theirs.recv()
        if isinstance(taken, str):
            block = shared_memory.SharedMemory(taken)
            theirs.send(float(np.ndarray(size // 8, "f8", block.buf)[0]))
            block.close()
        else:
            theirs.send(taken if isinstance(taken, int) else float(taken[0]))

    def end() -> None:
        for block in blocks:
            block.close()
            block.unlink()

    return send, receive, end


def queues(size: int) -> Channel:
    """A queue in each direction."""
    there, back = FORK.Queue(), FORK.Queue()
    plain = data(size)

    def send(number: int) -> object:
        there.put(plain[number % COUNT])
        return back.get()

    return send, lambda: back.put(float(there.get()[0])), lambda: None


def by_ray(size: int, seconds: float) -> list[float]:
    """Round trips through an actor, in seconds."""
    import ray

    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)

    @ray.remote
    class Reader:
        def first(self, given: "Any") -> float:
            return float(given[0])

    reader = Reader.remote()
    references = [ray.put(one) for one in data(size)]
    try:
        return timed(
            lambda number: ray.get(reader.first.remote(references[number % COUNT])), seconds
        )
    finally:
        ray.shutdown()


def timed(send: Callable[[int], object], seconds: float) -> list[float]:
    """How long each of many round trips took; the answers are looked at."""
    taken = []
    number = 0
    end = time.perf_counter() + seconds
    while len(taken) < LEAST or time.perf_counter() < end:
        began = time.perf_counter()
        answer = send(number)
        took = time.perf_counter() - began
        if answer != number % COUNT:
            raise RuntimeError(f"array {number % COUNT} came as {answer}")
        if number >= WARM_UP:
            taken.append(took)
        number += 1
    return taken


def handed(way: str, size: int, seconds: float) -> None:
    """The first part."""
    if way == "ray":
        taken = by_ray(size, seconds)
    else:
        if way in ("pointer", "ungil", "ungil, copied"):
            send, receive, end = ungil(way, size)
        elif way == "mp.Queue":
            send, receive, end = queues(size)
        else:
            send, receive, end = pipes(way, size)

        def receiver() -> None:
            while True:
                receive()

        other = FORK.Process(target=receiver, daemon=True)
        other.start()
        try:
            taken = timed(send, seconds)
        finally:
            other.kill()
            other.join()
            end()
    work.say({"round_trip_us": statistics.median(taken) * 1e6, "round_trips": len(taken)})


def read(way: str, size: int, readers: int) -> None:
    """The second part."""
    from ungil import share

    whole = np.arange(size // 8, dtype="f8")
    total = float(whole.sum())
    heap = share.Heap(max_size=1 << 31)
    small = heap.share(share.array(np.ones(1000))) if way == "ungil" else np.ones(1000)
    processes = [os.getpid()]

    def together() -> float:
        return sum(megabytes(process, "smaps_rollup", "Pss") for process in processes)

    def reader(told: "Any") -> None:
        for _ in range(2):
            given = told.recv()
            told.send(float(np.asarray(given).sum()))
        told.recv()  # Until its memory has been looked at.

    crew = []
    for _ in range(readers):
        ours, theirs = FORK.Pipe()
        started = FORK.Process(target=reader, args=(theirs,))
        started.start()
        theirs.close()
        processes.append(started.pid)
        crew.append((started, ours))
    given: Any = whole
    if way == "ungil":
        given = heap.share(share.array(whole))
        del whole
    for _, pipe in crew:
        pipe.send(small)
    if {pipe.recv() for _, pipe in crew} != {1000.0}:
        raise RuntimeError("a reader has read something else")
    before = together()
    for _, pipe in crew:
        pipe.send(given)
    totals = {pipe.recv() for _, pipe in crew}
    if totals != {total}:
        raise RuntimeError("a reader has read something else")
    said = {
        "array": size / 1e6,
        "before": before,
        "after": together(),
        "rss": max(megabytes(process, "status", "VmHWM") for process in processes[1:]),
    }
    for started, pipe in crew:
        pipe.send("end")
        started.join()
    work.say(said)


def added(way: str, seconds: float) -> None:
    """The third part."""
    if way == "mp.Array":
        counters: Any = FORK.Array("q", 16)
        lock = counters.get_lock()

        def many() -> None:
            for _ in range(1000):
                with lock:
                    counters[3] += 1
    elif way == "ungil":
        from ungil import share

        shared = share.Heap(max_size=1 << 26).share(share.array(16, "int64"))
        add = shared.add

        def many() -> None:
            for _ in range(1000):
                add(3, 1)
    else:
        from ungil import share

        if way == "numpy":
            view = np.zeros(16, "int64")
        else:
            view = np.asarray(share.Heap(max_size=1 << 26).share(share.array(16, "int64")))

        def many() -> None:
            for _ in range(1000):
                view[3] += 1

    taken = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        many()
        taken.append(time.perf_counter() - began)
    work.say({"add_ns": statistics.median(taken) * 1e6})


def main() -> None:
    """Measures."""
    part, way, *numbers = sys.argv[1:]
    if part == "handed":
        handed(way, int(numbers[0]), float(numbers[1]))
    elif part == "read":
        read(way, int(numbers[0]), int(numbers[1]))
    else:
        added(way, float(numbers[0]))


if __name__ == "__main__":
    main()
