"""Kills producers and consumers of shared queues at random, and accounts for every item.

    python tests/queue_soak.py [--kills N] [--workers N] [--seed N]

Producers put numbered items into one queue, consumers lease them and write them down in another
one before they acknowledge. All of them are killed at random moments and replaced. At the end each
item that a producer said it had put in was done, none by more processes than died in between, and
after a collection nothing is left in the heap but the queues. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from ungil import share

# So that ends, growth and values with and without memory of their own are met.
PACE_S = 0.0002
LONG = "an item of more than fourteen bytes"


def produce(jobs: share.Queue[Any], said: share.dict[int, int], name: int) -> None:
    """Puts items in for ever, and says after each one how many there are."""
    number = 0
    while True:
        number += 1
        jobs.put((name, number, LONG) if number % 3 else name << 32 | number)
        said[name] = number
        # Kills are what is wanted, and not items.
        time.sleep(PACE_S)


def consume(jobs: share.Queue[Any], done: share.Queue[int]) -> None:
    """Does items until the queue is closed."""
    while True:
        try:
            lease = jobs.lease()
        except share.ShutDown:
            return
        item = lease.item
        done.put(item if isinstance(item, int) else item[0] << 32 | item[1])
        lease.ack()


def child(work: Callable[..., None], *arguments: Any) -> int:
    """Runs `work` in a forked process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        finally:
            os._exit(status)
    return pid


def soak(kills: int, workers: int, chance: random.Random) -> list[str]:
    """Does it; returns what went wrong."""
    heap = share.Heap(max_size=1 << 28)
    jobs: share.Queue[Any] = heap.share(share.Queue[Any](100))
    done: share.Queue[int] = heap.share(share.Queue[int]())
    said: share.dict[int, int] = heap.share({})
    counts: Counter[int] = Counter()
    names = iter(range(1, 1 << 30))
    producers = [child(produce, jobs, said, next(names)) for _ in range(workers)]
    consumers = [child(consume, jobs, done) for _ in range(workers)]
    for _ in range(kills):
        time.sleep(chance.expovariate(1 / 0.004))
        group = chance.choice([producers, consumers])
        dead = group.pop(chance.randrange(workers))
        os.kill(dead, signal.SIGKILL)
        os.waitpid(dead, 0)
        is_producer = group is producers
        group.append(
            child(produce, jobs, said, next(names)) if is_producer else child(consume, jobs, done)
        )
        if not done.empty():
            counts.update(done.get_many(1 << 20))
    for dead in producers:
        os.kill(dead, signal.SIGKILL)
        os.waitpid(dead, 0)
    jobs.close()
    failed = [pid for pid in consumers if os.waitpid(pid, 0)[1] != 0]
    if not done.empty():
        counts.update(done.get_many(1 << 20))
    wrong = [f"{len(failed)} consumers failed"] if failed else []
    for name, number in said.items():
        # One more may be in that was not said.
        missing = [one for one in range(1, number + 1) if counts[name << 32 | one] == 0]
        if missing:
            wrong.append(f"items {missing} of producer {name} are lost")
    again = counts.total() - len(counts)
    if again > kills:
        wrong.append(f"{again} items were done again, with {kills} kills")
    if jobs.leased or jobs.qsize():
        wrong.append(f"{jobs.leased} leases and {jobs.qsize()} items are left")
    said.clear()
    heap.gc()
    left = heap.statistics().contents
    if left is None or left.lost_bytes:
        wrong.append("memory is lost after a collection")
    print(f"{kills} kills, {len(counts):,} items, {again} of them done again, left: {left}")
    return wrong


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"--seed {options.seed}")
    wrong = soak(options.kills, options.workers, random.Random(options.seed))
    for what in wrong:
        print(what)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
