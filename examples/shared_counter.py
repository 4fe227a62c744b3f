"""Counts that several processes increment at once, while some of them are killed.

Each of the workers counts what it did in a shared dict. One of them is killed with SIGKILL in the
middle of it and another takes its place: no count is lost, nobody waits for the dead one, and what
the dead one had counted stays counted.

    python examples/shared_counter.py
"""

import argparse
import os
import signal

from ungil import share


def start(count: share.dict[str, int], name: str, times: int | None) -> int:
    """Fork a worker that counts `times`, or for ever; its process ID."""
    worker = os.fork()
    if worker == 0:
        while times is None or count.get(name, 0) < times:
            count.incr(name)
            count.incr("all")
        os._exit(0)
    return worker


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    parser.add_argument("--times", type=int, default=50_000, help="that each one counts [50000]")
    options = parser.parse_args()

    heap = share.Heap(max_size=1 << 24)
    count = heap.share({"all": 0})
    crew = [start(count, f"worker {number}", options.times) for number in range(options.workers)]
    victim = start(count, "victim", None)
    while count.get("victim", 0) < 1_000:
        pass  # Until it is at work.
    os.kill(victim, signal.SIGKILL)
    for worker in [*crew, victim]:
        os.waitpid(worker, 0)

    killed = count["victim"]
    print(f"one worker was killed after it had counted {killed}")
    for number in range(options.workers):
        print(f"worker {number} counted {count[f'worker {number}']}")
    # The victim may have died between its two increments.
    counted = options.workers * options.times + killed
    missing = counted - count["all"]
    print(f"all together {count['all']}: {missing} lost to the death, none to the race")
    if missing not in (0, 1):
        raise RuntimeError(f"{missing} counts are missing")


if __name__ == "__main__":
    main()
