"""Kills processes that use shared arrays at random, and accounts for every number and every byte.

    python tests/array_soak.py [--kills N] [--workers N] [--seed N]

Workers add to one counter, and say after each time how often they have; they add rows to an array
that moves as it grows, put arrays of up to 2 MB into a dict and out of it, and look at all of that
by numpy. All of them are killed at random moments and replaced. At the end no add that a worker
said is missing, there are no more others than workers that died, no row was ever seen in part, and
after a collection nothing is left in the heap but the counter. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from typing import Any

import numpy as np

from ungil import share

COLUMNS = 50
MOST_ROWS = 2000
PLACES = 8
LARGEST = 1 << 18


def fail(why: str) -> None:
    """Says what was seen that must not be."""
    print(why, flush=True)
    os._exit(1)


def is_even(numbers: Any) -> bool:
    """Whether all numbers of each row are the same."""
    return bool((numbers == numbers[..., :1]).all())


def work(root: share.dict[str, Any], name: int) -> None:
    """Uses arrays for ever."""
    draw = random.Random(name)
    counter, said = root["counter"], root["said"]
    number = 0
    while True:
        number += 1
        counter.add(0, 1)
        said[name] = number
        rows: share.array = root["rows"]
        rows.extend(np.full((draw.randrange(1, 20), COLUMNS), number))
        if not is_even(np.asarray(rows)):
            fail("a row was seen in part")
        if len(rows) > MOST_ROWS:
            root["rows"] = share.array((0, COLUMNS), "int64")
        place = f"place {draw.randrange(PLACES)}"
        found = root.get(place)
        if found is not None and not is_even(np.asarray(found)):
            fail("an array was seen in part")
        if draw.random() < 0.3:
            root.pop(place, None)
        else:
            root[place] = share.array(np.full(draw.randrange(1, LARGEST), number))


def started(root: share.dict[str, Any], name: int) -> int:
    """A worker in a forked process."""
    child = os.fork()
    if child == 0:
        try:
            work(root, name)
        except BaseException as error:
            fail(f"a worker has ended: {error!r}")
    return child


def ended(child: int, expected: int) -> None:
    """Waits for a worker; what it found wrong ends everything."""
    if (status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) != expected:
        sys.exit(f"a worker has ended by {status}")


def main() -> None:
    """Kills, and accounts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000, help="[10,000]")
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    parser.add_argument("--seed", type=int, default=1, help="[1]")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    heap = share.Heap(max_size=1 << 28)
    root = heap.root
    root.update(counter=share.array(1, "int64"), said={}, rows=share.array((0, COLUMNS), "int64"))
    names = iter(range(options.kills + options.workers))
    crew = [started(root, next(names)) for _ in range(options.workers)]
    began = time.monotonic()
    for name in names:
        time.sleep(draw.random() * 0.01)
        victim = draw.randrange(options.workers)
        os.kill(crew[victim], signal.SIGKILL)
        ended(crew[victim], -signal.SIGKILL)
        crew[victim] = started(root, name)
    for child in crew:
        os.kill(child, signal.SIGKILL)
        ended(child, -signal.SIGKILL)
    took_s = time.monotonic() - began

    adds, said = root["counter"][0], sum(root["said"].values())
    deaths = options.kills + options.workers
    for key in [key for key in root if key != "counter"]:
        del root[key]
    heap.gc()
    contents = heap.statistics().contents
    if contents is None:
        sys.exit("somebody holds the heap")
    left = {kind: usage.objects for kind, usage in contents.types.items() if usage.objects}
    print(f"{deaths:,} killed in {took_s:.0f} s; {adds:,} adds, of which {said:,} were said")
    if not said <= adds <= said + deaths:
        sys.exit("an add was lost, or made twice")
    if contents.lost_bytes or left != {"dict": 1, "array": 1, "buffer": 1}:
        sys.exit(
            f"{contents.lost_bytes} bytes are lost, and there is more than there should: {left}"
        )


if __name__ == "__main__":
    main()
