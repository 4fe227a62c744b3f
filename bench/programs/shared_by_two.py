"""Two processes use one shared object at once, for a fixed time.

    shared_by_two.py WORK WAY SECONDS

WORK is `count` (both increment one number), `get`, `set` or `get and set` (random keys of one
dict). Prints the operations of both (`operations`), the seconds that they took (`wall_s`) and, of
`count`, how many increments are not in the number at the end (`lost`).
"""

import random
import sys
import time
from typing import Any

import work
from shared_subjects import COUNTERS, FORK, OPERATIONS, Attach, Subject

SIZE = 1_000
WORKERS = 2
# Operations between two looks at the clock.
BATCH = 100
LOOP = """
def loop(subject, keys, end, clock):
    done = at = 0
    while clock() < end:
        for key in keys[at : at + {batch}]:
            {statement}
        done += {batch}
        at = (at + {batch}) % len(keys)
    return done
"""


def subject_of(task: str, way: str) -> "tuple[Subject, dict[str, int], list[str], int]":
    """What is shared, what it holds, the keys that are used, operations in a statement."""
    if task == "count":
        return COUNTERS[way][0], {"hits": 0}, ["hits"] * SIZE, 1
    keys = [f"name {number}" for number in range(SIZE)]
    kept = {key: 1_000 + number for number, key in enumerate(keys)}
    get, set_ = (OPERATIONS[f"dict {kind}"][way] for kind in ("get", "set"))
    if task == "get and set":
        # Both are whole lines, so that a `with` of one does not enclose the other.
        both = f"{get.statement}\n            {set_.statement}"
        return Subject(get.make, both), kept, keys, 2
    return (get if task == "get" else set_), kept, keys, 1


def worker(number: int, attach: Attach, statement: str, keys: "list[str]", told: Any) -> None:
    """Says that it is ready, is told the time at which to begin and to end, says what it did."""
    names: dict[str, Any] = {}
    exec(LOOP.format(batch=BATCH, statement=statement), names)
    subject = attach()
    random.Random(number).shuffle(keys)
    names["loop"](subject, keys, time.perf_counter() + 0.01, time.perf_counter)  # Warms up.
    told.send("ready")
    begin, end = told.recv()
    while time.perf_counter() < begin:
        pass
    done = names["loop"](subject, keys, end, time.perf_counter)
    told.send((done, time.perf_counter() - begin))


def main() -> None:
    """Measures."""
    task, way, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    subject, kept, keys, each = subject_of(task, way)
    with subject.make(kept) as attach:
        pipes, workers = [], []
        for number in range(WORKERS):
            ours, theirs = FORK.Pipe()
            started = FORK.Process(
                target=worker, args=(number, attach, subject.statement, keys, theirs)
            )
            started.start()
            theirs.close()
            pipes.append(ours)
            workers.append(started)
        for pipe in pipes:
            pipe.recv()
        if task == "count":
            # The warm-up counted, too.
            before = eval(COUNTERS[way][1], {"subject": attach()})
        # perf_counter is the same clock in all processes of a Linux machine.
        begin = time.perf_counter() + 0.05
        for pipe in pipes:
            pipe.send((begin, begin + seconds))
        results = [pipe.recv() for pipe in pipes]
        for started in workers:
            started.join()
        done = sum(one for one, _ in results)
        said = {"operations": done * each, "wall_s": max(wall_s for _, wall_s in results)}
        if task == "count":
            after = eval(COUNTERS[way][1], {"subject": attach()})
            said["lost"] = done - (after - before)
        work.say(said)


if __name__ == "__main__":
    main()
