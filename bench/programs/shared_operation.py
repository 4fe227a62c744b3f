"""One operation on something shared, and on its builtin, in turns and in the same loop.

    shared_operation.py OPERATION WAY SECONDS

Prints nanoseconds of an operation: of the loop with it (`loop_ns`, `builtin_loop_ns`), and of the
loop with nothing in it (`empty_ns`), each the median of all turns. `ratio` is what the shared one
adds to the empty loop, divided by what the builtin adds; `loop_ratio` is that of the whole loops.
"""

import random
import statistics
import sys
import time
import timeit
from typing import Any

import work
from shared_subjects import OPERATIONS, VALUES, Subject

SIZE = 1_000
# Of a part of a turn. Long enough for the clock, short enough for the machine to stay the same.
PART_S = 0.01


def content(operation: str) -> "tuple[Any, list[Any]]":
    """What is shared, and the keys in the order of their use."""
    order = list(range(SIZE))
    random.Random(1).shuffle(order)
    if operation in VALUES:
        names = [f"name {number}" for number in range(SIZE)]
        return {name: VALUES[operation](number) for number, name in enumerate(names)}, [
            names[number] for number in order
        ]
    if operation == "index of a tuple":
        return [(number, f"name {number}") for number in range(SIZE)], [(0, "name 0")] * 10
    if operation.startswith("dict"):
        names = [f"name {number}" for number in range(SIZE)]
        # Numbers beyond those that CPython has ready.
        return {name: 1_000 + number for number, name in enumerate(names)}, [
            names[number] for number in order
        ]
    if operation.startswith("list"):
        return [1_000 + number for number in range(SIZE)], order
    return (None if operation.startswith("lock") else 12_345), order


def timer(statement: str, subject: Any, keys: "list[Any]") -> timeit.Timer:
    """A loop of its own for each subject: the interpreter adapts the bytecode to its types."""
    return timeit.Timer(
        f"for key in keys:\n    {statement}",
        "subject, keys = the_subject, the_keys",
        globals={"the_subject": subject, "the_keys": keys},
    )


def passes(loop: timeit.Timer) -> int:
    """How many fill a part of a turn."""
    loop.timeit(1)
    return max(1, int(PART_S / loop.timeit(1)))


def compared(loops: "list[timeit.Timer]", passed: int, seconds: float) -> "dict[str, float]":
    """What this program prints of three loops: the empty one, the builtin's, the shared one's.

    Each does `passed` operations at a time.
    """
    counts = [passes(loop) for loop in loops]
    turns: list[list[float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(turns) < 3:
        turns.append(
            [
                1e9 * loop.timeit(count) / (count * passed)
                for loop, count in zip(loops, counts, strict=True)
            ]
        )
    empty_ns, builtin_loop_ns, loop_ns = (
        statistics.median(part) for part in zip(*turns, strict=True)
    )
    return {
        "empty_ns": empty_ns,
        "builtin_loop_ns": builtin_loop_ns,
        "loop_ns": loop_ns,
        "ratio": (loop_ns - empty_ns) / (builtin_loop_ns - empty_ns),
        "loop_ratio": loop_ns / builtin_loop_ns,
    }


def main() -> None:
    """Measures."""
    operation, way, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    kept, keys = content(operation)
    builtin, shared = OPERATIONS[operation]["builtin"], OPERATIONS[operation][way]

    def loop_of(subject: Subject, attached: Any) -> timeit.Timer:
        return timer(subject.statement, attached, keys)

    with builtin.make(kept) as plain, shared.make(kept) as attach:
        loops = [timer("pass", None, keys), loop_of(builtin, plain()), loop_of(shared, attach())]
        work.say(compared(loops, len(keys), seconds))


if __name__ == "__main__":
    main()
