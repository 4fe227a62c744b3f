"""Threads that compute beside threads that wait often; says how much CPU time each thread got.

Kinds of those that wait: `tiny` works for some microseconds between waits of up to 100 us, `greedy`
for about a millisecond, and `part` works for a fifth of each 10 ms if it gets it.
"""

import random
import resource
import threading
import time

import work
from one_cpu_thread import step

# Calls of `step`, each of about a microsecond, between two waits, and the longest wait.
KINDS = {"tiny": (3, 1e-4), "greedy": (1000, 1e-4)}
PART_CALLS, PART_PERIOD_S = 2000, 0.01
CHUNK = 50
WARM_UP_S = 0.3


def compute(over: threading.Event) -> None:
    """Work until it is over."""
    total, is_over = 0, over.is_set
    while not is_over():
        for _ in range(CHUNK):
            total = step(total)


def wait_often(kind: str, seed: int, over: threading.Event) -> None:
    """Work and wait in turn."""
    total, chance = 0, random.Random(seed)
    calls, longest_s = KINDS[kind]
    while not over.is_set():
        for _ in range(calls):
            total = step(total)
        time.sleep(longest_s * chance.random())


def work_in_part(over: threading.Event) -> None:
    """Work at the beginning of each period, and not later for one that was missed."""
    total, due_s = 0, time.perf_counter()
    while not over.is_set():
        for _ in range(PART_CALLS):
            total = step(total)
        due_s = max(due_s + PART_PERIOD_S, time.perf_counter())
        time.sleep(max(0.0, due_s - time.perf_counter()))


def cpu_s(thread: threading.Thread) -> float:
    """CPU time of a thread that runs."""
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def main() -> None:
    """Floods."""
    parser = work.options(__doc__)
    parser.add_argument("--compute", type=int, required=True, help="threads that compute")
    parser.add_argument("--wait", type=int, required=True, help="threads that wait often")
    parser.add_argument("--kind", choices=[*KINDS, "part"], required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = work.parse(parser)
    over = threading.Event()
    computing = [threading.Thread(target=compute, args=(over,)) for _ in range(options.compute)]
    waiting = [
        threading.Thread(target=work_in_part, args=(over,))
        if options.kind == "part"
        else threading.Thread(target=wait_often, args=(options.kind, number, over))
        for number in range(options.wait)
    ]
    threads = computing + waiting
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP_S)
    before, wall_s = [cpu_s(thread) for thread in threads], time.perf_counter()
    switches = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(options.seconds)
    after, wall_s = [cpu_s(thread) for thread in threads], time.perf_counter() - wall_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    over.set()
    for thread in threads:
        thread.join()
    shares = [(late - early) / wall_s for early, late in zip(before, after, strict=True)]
    work.say_result(
        {
            "computing": shares[: options.compute],
            "waiting": shares[options.compute :],
            "switches": (used.ru_nvcsw + used.ru_nivcsw - switches.ru_nvcsw - switches.ru_nivcsw)
            / wall_s,
        }
    )


if __name__ == "__main__":
    main()
