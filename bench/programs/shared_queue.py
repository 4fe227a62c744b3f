"""Processes hand items to each other through a queue.

    shared_queue.py WORK WAY ITEMS

WORK is `1:1 int`, `1:1 1 KB`, `4:4 int` (so many producers and consumers), `round trip` (one item
goes there and back, ITEMS times), `round trip asleep` (the same, but each side computes for PAUSE_S
before it answers, so that the other one sleeps), `idle` (eight processes wait for SECONDS), or
`threads` (one process puts in and takes out, which needs no sharing).

Prints how many items there were (`items`), the seconds from the first to the last (`wall_s`) and
the CPU time of all processes (`cpu_s`). The time that is spent computing is not in `wall_s`. Of
`idle`, `cpu_s` is that of the eight while they wait, without their start and their end.
"""

import functools
import importlib
import multiprocessing
import os
import queue
import resource
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import work

FORK = multiprocessing.get_context("fork")
PAUSE_S = 50e-6
SECONDS = 2.0
# In which they have come from their start to waiting.
SETTLING_S = 0.5
# For which `ungil, spinning` looks: longer than the other side computes.
SPIN_S = 1e-3
BATCH = 100

# What is called to put an item in, and to take one out.
Ends = tuple[Callable[[Any], object], Callable[[], Any]]


def ungil() -> Ends:
    """A shared queue."""
    from ungil import share

    made = share.Heap(max_size=1 << 28).share(share.Queue[Any]())
    return made.put, made.get


def ungil_spinning() -> Ends:
    """The same, with sides that look before they sleep."""
    from ungil import share

    made = share.Heap(max_size=1 << 28).share(share.Queue[Any](spin=SPIN_S))
    return made.put, made.get


def iceoryx() -> Ends:
    """Publisher and subscriber of bytes, who tell each other by events."""
    import through_iceoryx2

    name = f"ungil bench {os.getpid()}"
    return through_iceoryx2.Sender(name), through_iceoryx2.Receiver(name)


def byte() -> Ends:
    """The least that the kernel needs to wake somebody; whatever the item is, one byte goes."""
    receiver, sender = os.pipe()
    return lambda _: os.write(sender, b"x"), lambda: os.read(receiver, 1)


def faster_fifo() -> Ends:
    """A ring of bytes in shared memory."""
    made: Any = importlib.import_module("faster_fifo").Queue(1 << 26)
    # Without these it polls with a timeout that ends in an exception.
    put: Callable[[Any], object] = functools.partial(made.put, timeout=1e9)
    get: Callable[[], Any] = functools.partial(made.get, timeout=1e9)
    return put, get


def pipe() -> Ends:
    """For one producer and one consumer."""
    receiver, sender = FORK.Pipe(duplex=False)
    return sender.send, receiver.recv


def mp_queue() -> Ends:
    """A pipe, locks, and a thread that feeds it."""
    made = FORK.Queue()
    return made.put, made.get


def mp_simple_queue() -> Ends:
    """A pipe and locks."""
    made = FORK.SimpleQueue()
    return made.put, made.get


def thread_queue() -> Ends:
    """Within a process."""
    made: queue.Queue[Any] = queue.Queue()
    return made.put, made.get


def thread_simple_queue() -> Ends:
    """Within a process, in C."""
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()
    return made.put, made.get


WAYS = {
    "ungil": ungil,
    "ungil, spinning": ungil_spinning,
    "mp.Queue": mp_queue,
    "mp.SimpleQueue": mp_simple_queue,
    "mp.Pipe": pipe,
    "os.pipe, one byte": byte,
    "faster-fifo": faster_fifo,
    "iceoryx2": iceoryx,
    "queue.Queue": thread_queue,
    "queue.SimpleQueue": thread_simple_queue,
}


def in_batches(items: int) -> Ends:
    """As `ungil`, a hundred at a time."""
    from ungil import share

    made = share.Heap(max_size=1 << 28).share(share.Queue[Any]())
    left = items

    def put(item: Any) -> None:
        made.put_many([item] * BATCH)

    def get() -> None:
        nonlocal left
        left -= len(made.get_many(min(BATCH, left)))

    return put, get


def compute() -> None:
    """Keeps a processor busy for a fixed time."""
    end = time.perf_counter() + PAUSE_S
    while time.perf_counter() < end:
        pass


@contextmanager
def opened(end: Any, all_of_them: Any) -> Generator[None]:
    """Waits for the others before it begins; some ends are opened by the process that uses them."""
    is_own = hasattr(end, "open")
    if is_own:
        end.open()
    all_of_them.wait()
    yield
    if is_own:
        # What was put in may be lost with who has put it in.
        all_of_them.wait()
        end.close()


def produce(put: Callable[[Any], object], item: object, items: int, begin: Any, told: Any) -> None:
    """Puts so many in, and tells when it began."""
    with opened(put, begin):
        told.send(time.perf_counter())
        for _ in range(items):
            put(item)


def consume(get: Callable[[], Any], items: int, begin: Any, told: Any) -> None:
    """Takes so many out, and tells when it had all."""
    with opened(get, begin):
        for _ in range(items):
            get()
        told.send(time.perf_counter())


def answer(get: Callable[[], Any], put: Callable[[Any], object], items: int, pause: bool) -> None:
    """Sends so many back."""
    for _ in range(items):
        item = get()
        if pause:
            compute()
        put(item)


def handed_over(ends: Ends, item: object, items: int, pairs: int, each: int = 1) -> float:
    """Seconds for which so many pairs of producers and consumers hand items over."""
    put, get = ends
    begin = FORK.Barrier(2 * pairs)
    count = items // pairs // each
    # Each tells its time by a pipe of its own: it is one clock for all processes.
    began, had = ([FORK.Pipe(duplex=False) for _ in range(pairs)] for _ in range(2))
    processes = [
        FORK.Process(target=produce, args=(put, item, count, begin, told)) for _, told in began
    ] + [FORK.Process(target=consume, args=(get, count, begin, told)) for _, told in had]
    for process in processes:
        process.start()
    begun = min(heard.recv() for heard, _ in began)
    ended = max(heard.recv() for heard, _ in had)
    for process in processes:
        process.join()
    return ended - begun


def there_and_back(make: Callable[[], Ends], items: int, pause: bool) -> float:
    """Seconds in which an item goes to another process and back, so many times."""
    (there, taken), (back, returned) = make(), make()
    process = FORK.Process(target=answer, args=(taken, back, items + 1, pause))
    process.start()
    there(0)
    returned()
    begun = time.perf_counter()
    for number in range(items):
        if pause:
            compute()
        there(number)
        returned()
    wall_s = time.perf_counter() - begun
    process.join()
    return wall_s - (2 * PAUSE_S * items if pause else 0)


def idle(ends: Ends) -> tuple[float, float]:
    """Seconds for which eight processes wait, and the CPU time that this takes."""
    processes = [FORK.Process(target=ends[1], daemon=True) for _ in range(8)]
    for process in processes:
        process.start()
    time.sleep(SETTLING_S)
    begun, before_s = time.perf_counter(), sum(map(on_cpu, processes))
    time.sleep(SECONDS)
    waited_s, cpu_s = time.perf_counter() - begun, sum(map(on_cpu, processes)) - before_s
    for _ in processes:
        ends[0](0)
    for process in processes:
        process.join()
    return waited_s, cpu_s


def on_cpu(process: Any) -> float:
    """Seconds of CPU time of a running process, which the kernel counts in nanoseconds."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def main() -> None:
    """Measures."""
    task, way, items = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if way == "ungil, 100 at a time":
        wall_s = handed_over(in_batches(items), 7, items, 1, BATCH)
    elif task == "threads":
        put, get = WAYS[way]()
        begun = time.perf_counter()
        for number in range(items):
            put(number)
            get()
        wall_s = time.perf_counter() - begun
    elif task == "idle":
        wall_s, cpu_s = idle(WAYS[way]())
        work.say({"items": items, "wall_s": wall_s, "cpu_s": cpu_s})
        return
    elif task.startswith("round trip"):
        wall_s = there_and_back(WAYS[way], items, task.endswith("asleep"))
    else:
        item = bytes(1024) if task.endswith("KB") else 7
        wall_s = handed_over(WAYS[way](), item, items, int(task[0]))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_s = sum(usage.ru_utime + usage.ru_stime for usage in used)
    work.say({"items": items, "wall_s": wall_s, "cpu_s": cpu_s})


if __name__ == "__main__":
    main()
