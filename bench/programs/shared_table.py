"""Workers read all of a big dict; says what memory that takes.

    shared_table.py WAY ROWS WORKERS

A row is a name, and a tuple of a number, a text and a float. Workers are forked when the table is
there; each reads all rows, those of a manager one of 100. Prints megabytes (of 10**6 bytes):
`table`, what the processes have more (PSS) when the table is there than before; `before` and
`after`, PSS of all processes (PSS divides what several have by their number) before and after the
reading; `peaks`, the peak RSS of each process, which counts the same shared page in each. And
`wall_s`, the reading.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import work
from shared_subjects import FORK

# Of a process's rows, those that are read through a manager: all would take minutes.
SAMPLE = 100


def rows(count: int) -> "Any":
    """The table."""
    for number in range(count):
        yield f"name {number}", (number, f"some text about {number}, " * 5, number / 7)


def megabytes(process: int, file: str, field: str) -> float:
    """A field of smaps_rollup or status, which are in units of 1024 bytes."""
    for line in Path(f"/proc/{process}/{file}").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"no {field} in {file}")


def read(table: "Any", count: int, step: int, told: "Any") -> None:
    """The worker."""
    told.recv()
    total = 0
    for number in range(0, count, step):
        total += table[f"name {number}"][0]
    told.send(total)
    told.recv()  # Until its memory has been looked at.


def main() -> None:
    """Measures."""
    way, count, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    processes = [os.getpid()]

    def together() -> float:
        return sum(megabytes(process, "smaps_rollup", "Pss") for process in processes)

    manager = FORK.Manager() if way == "Manager" else None
    if manager is not None:
        # The manager's own process.
        processes.append(manager._process.pid)
        table = manager.dict()
    elif way == "ungil":
        from ungil import share

        table = share.Heap(max_size=1 << 34).root
    else:
        table = {}
    bare = together()
    batch: dict[str, Any] = {}
    for name, row in rows(count):
        if manager is None:
            table[name] = row
        else:
            batch[name] = row
            if len(batch) == 10_000:
                table.update(batch)
                batch = {}
    if manager is not None:
        table.update(batch)
    size = together() - bare

    step = SAMPLE if way == "Manager" else 1
    pipes = []
    crew = []
    for _ in range(workers):
        ours, theirs = FORK.Pipe()
        started = FORK.Process(target=read, args=(table, count, step, theirs))
        started.start()
        theirs.close()
        pipes.append(ours)
        crew.append(started)
        processes.append(started.pid)
    before = together()
    began = time.perf_counter()
    for pipe in pipes:
        pipe.send("begin")
    totals = {pipe.recv() for pipe in pipes}
    wall_s = time.perf_counter() - began
    if totals != {sum(range(0, count, step))}:
        raise RuntimeError("a worker did not read what it should")
    said = {
        "table": size,
        "before": before,
        "after": together(),
        "peaks": [megabytes(process, "status", "VmHWM") for process in processes],
        "wall_s": wall_s,
    }
    for pipe in pipes:
        pipe.send("end")
    for started in crew:
        started.join()
    if manager is not None:
        manager.shutdown()
    work.say(said)


if __name__ == "__main__":
    main()
