"""Kills the workers of a pool at random moments, and accounts for every task.

    python tests/pool_soak.py                         24 workers, 100,000 tasks, a kill each 50 ms
    python tests/pool_soak.py --workers 4 --tasks 2000 --every 0.02 --method spawn

Between two kills as many tasks begin as there are workers. Every task counts its beginnings in
shared memory. In the end each has either its result, having begun once, or a WorkerDied, having
begun once at most; each death is told by one task at most. With --retries a task may begin more
often, and none may fail but those that ran out of them. Exits with 1 if any of this is not so.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ungil import share


def begin(begun: share.list[int], number: int, most_s: float) -> int:
    """Counts that it has begun, and takes a while."""
    begun.incr(number)
    time.sleep(random.random() * most_s)
    return number * 3


@dataclass
class Account:
    """What became of the tasks, and what is wrong with that."""

    done: int
    died: int
    kills: int
    seconds: float
    wrong: list[str]


def soak(
    *,
    workers: int,
    tasks: int,
    every_s: float,
    method: str = "fork",
    retries: int = 0,
    most_s: float = 0.005,
    seed: int = 0,
) -> Account:
    """Run the tasks while workers are killed."""
    chance = random.Random(seed)
    heap = share.Heap(max_size=1 << 30)
    begun: share.list[int] = heap.share([0] * tasks)
    ended = threading.Event()
    kills = 0
    started = time.monotonic()

    def kill(pool: share.Pool) -> None:
        nonlocal kills
        seen = 0
        while not ended.wait(every_s):
            # A busy machine may start workers more slowly than this would kill them.
            now = share.version(begun)
            if now - seen < workers:
                continue
            seen = now
            pids = pool.worker_pids()
            if pids:
                try:
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass  # It was dead already.

    with share.Pool(workers, method, heap=heap, retries=retries) as pool:
        # From before the first task: on a busy machine half of them are done before all are in.
        killer = threading.Thread(target=kill, args=(pool,))
        killer.start()
        try:
            futures = [pool.submit(begin, begun, number, most_s) for number in range(tasks)]
            outcomes = [outcome(future) for future in futures]
        finally:
            ended.set()
            killer.join()
    counts = begun.copy()
    wrong = [*accounted(outcomes, counts, retries)]
    died = sum(isinstance(it, share.WorkerDied) for it in outcomes)
    return Account(tasks - died, died, kills, time.monotonic() - started, wrong)


def outcome(future: Any) -> object:
    """The value of a task, or what it raised."""
    try:
        return future.result(300)
    except Exception as error:
        return error


def accounted(outcomes: list[object], begun: list[int], retries: int) -> Any:
    """Says everything that is wrong."""
    for number, (it, times) in enumerate(zip(outcomes, begun, strict=True)):
        if isinstance(it, share.WorkerDied):
            if times > retries + 1:
                yield f"task {number} died, and had begun {times} times"
        elif it != number * 3:
            yield f"task {number} is {it!r}"
        elif not 1 <= times <= retries + 1:
            yield f"task {number} is done, and has begun {times} times"
    pids = Counter(it.pid for it in outcomes if isinstance(it, share.WorkerDied))
    yield from (f"worker {pid} died for {n} tasks" for pid, n in pids.items() if n > 1)


def main() -> None:
    """Soaks, and prints the account."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--workers", type=int, default=24)
    made.add_argument("--tasks", type=int, default=100_000)
    made.add_argument("--every", type=float, default=0.05, help="seconds between kills [0.05]")
    made.add_argument("--method", default="fork", choices=("fork", "spawn", "forkserver"))
    made.add_argument("--retries", type=int, default=0)
    made.add_argument("--most", type=float, default=0.005, help="seconds of a task [0.005]")
    made.add_argument("--seed", type=int, default=0)
    it = made.parse_args()
    account = soak(
        workers=it.workers,
        tasks=it.tasks,
        every_s=it.every,
        method=it.method,
        retries=it.retries,
        most_s=it.most,
        seed=it.seed,
    )
    print(
        f"{it.tasks:,} tasks, {it.workers} workers ({it.method}), {account.kills} kills in"
        f" {account.seconds:.1f} s: {account.done:,} done, {account.died} reported as died,"
        f" {len(account.wrong)} wrong"
    )
    for sentence in account.wrong[:20]:
        print(sentence, file=sys.stderr)
    sys.exit(bool(account.wrong))


if __name__ == "__main__":
    main()
