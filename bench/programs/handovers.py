"""Threads that hand over to each other all the time: says what that took.

The argument names the case. Nobody computes for long in any of them.
"""

import asyncio
import hashlib
import os
import queue
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import work


def join_all(threads: "Iterable[threading.Thread]") -> None:
    """Start them and wait for their end."""
    started = list(threads)
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def pass_items(pairs: int, items: int) -> None:
    """Half of the threads put items into a bounded queue, the other half take them out."""
    channel: queue.Queue[int] = queue.Queue(pairs)

    def produce() -> None:
        for number in range(items // pairs):
            channel.put(number)

    def consume() -> None:
        for _ in range(items // pairs):
            channel.get()

    join_all(threading.Thread(target=target) for _ in range(pairs) for target in (produce, consume))


def map_tiny(items: int) -> None:
    """A pool of eight threads, each item the cheapest of calls."""
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(int, ["7"] * items):
            pass


def ping(exchanges: int) -> None:
    """Four pairs of threads; each sends a byte and waits for the other's."""

    def serve(end: socket.socket) -> None:
        with end:
            for _ in range(exchanges):
                end.send(b"x")
                end.recv(1)

    def answer(end: socket.socket) -> None:
        with end:
            for _ in range(exchanges):
                end.recv(1)
                end.send(b"x")

    pairs = [socket.socketpair() for _ in range(4)]
    join_all(
        threading.Thread(target=target, args=(end,))
        for pair in pairs
        for target, end in zip((serve, answer), pair, strict=True)
    )


def send_to_oneself(exchanges: int) -> None:
    """Eight threads, each with a pair of sockets of its own, on which it never has to wait."""

    def play() -> None:
        writer, reader = socket.socketpair()
        with writer, reader:
            for _ in range(exchanges):
                writer.send(b"x")
                reader.recv(1)

    join_all(threading.Thread(target=play) for _ in range(8))


def write_lines(lines: int) -> None:
    """One thread writes lines into a pipe, another reads them one by one."""
    reader, writer = os.pipe()

    def write() -> None:
        for number in range(lines):
            os.write(writer, b"%06d\n" % number)
        os.close(writer)

    def read() -> None:
        while os.read(reader, 7):
            pass
        os.close(reader)

    join_all(threading.Thread(target=target) for target in (write, read))


def start_and_join(threads: int, at_once: int) -> None:
    """Short threads, so many at once."""
    for _ in range(threads // at_once):
        join_all(threading.Thread(target=int) for _ in range(at_once))


def ask_threads(rounds: int) -> None:
    """A hundred calls at once in asyncio's threads, again and again."""

    async def ask() -> None:
        for _ in range(rounds):
            await asyncio.gather(*(asyncio.to_thread(int) for _ in range(100)))

    asyncio.run(ask())


def hash_blocks(blocks: int) -> None:
    """Four threads hash blocks that are just long enough for the GIL to be released."""
    block = bytes(4096)

    def digest() -> None:
        for _ in range(blocks):
            hashlib.sha256(block)

    join_all(threading.Thread(target=digest) for _ in range(4))


def lock_alone(times: int) -> None:
    """Two threads; each takes and lets go of a lock that nobody else wants."""

    def use() -> None:
        lock = threading.Lock()
        take, let_go = lock.acquire, lock.release
        for _ in range(times):
            take()
            let_go()

    join_all(threading.Thread(target=use) for _ in range(2))


CASES: "dict[str, Callable[[float], None]]" = {
    "queue 50+50": lambda scale: pass_items(50, int(40_000 * scale)),
    "queue 4+4": lambda scale: pass_items(4, int(40_000 * scale)),
    "pool map": lambda scale: map_tiny(int(20_000 * scale)),
    "socket pairs": lambda scale: ping(int(10_000 * scale)),
    "own socket pairs": lambda scale: send_to_oneself(int(10_000 * scale)),
    "pipe": lambda scale: write_lines(int(100_000 * scale)),
    "start and join": lambda scale: start_and_join(int(5_000 * scale), 1),
    "start and join 10": lambda scale: start_and_join(int(5_000 * scale), 10),
    "to_thread": lambda scale: ask_threads(int(100 * scale)),
    "sha256": lambda scale: hash_blocks(int(20_000 * scale)),
    "own locks": lambda scale: lock_alone(int(2_000_000 * scale)),
}


def main() -> None:
    """Runs a case."""
    parser = work.options(__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--scale", type=float, default=1.0, help="of the amount of work")
    options = work.parse(parser)
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    CASES[options.case](options.scale)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    after = resource.getrusage(resource.RUSAGE_SELF)
    work.say_result(
        {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "voluntary": after.ru_nvcsw - before.ru_nvcsw,
            "involuntary": after.ru_nivcsw - before.ru_nivcsw,
        }
    )


if __name__ == "__main__":
    main()
