"""A big table that several workers use without a copy for each.

Workers that are forked from a process with a big dict share its memory at first. But looking at an
object writes its reference count, so page after page is copied, until each worker has its own. A
shared dict has no such counts in its rows: the workers read it all, and nothing is copied.

    python examples/read_mostly_table.py
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from ungil import share


def rows(count: int) -> Iterator[tuple[str, tuple[int, str, float]]]:
    """The table: a name, and what is known about it."""
    for number in range(count):
        yield f"name {number}", (number, f"some text about {number}", number / 7)


def own_megabytes(process: int) -> float:
    """Memory of a process: what it has alone, and its part of what it has together with others."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("smaps_rollup has no Pss")


def use(table: MutableMapping[str, Any], count: int, workers: int) -> tuple[float, float]:
    """Let workers read everything; megabytes of all processes before and after."""
    # A pipe ends when the last process that could write to it closes it: that tells the workers to
    # begin and to end, and the parent that they are done.
    begin, may_begin = os.pipe()
    end, may_end = os.pipe()
    done, tell = os.pipe()
    crew: list[int] = []
    for _ in range(workers):
        worker = os.fork()
        if worker == 0:
            status = 1
            try:
                os.close(may_begin)
                os.close(may_end)
                os.read(begin, 1)
                total = sum(table[f"name {number}"][0] for number in range(count))
                os.close(tell)
                os.read(end, 1)
                status = 0 if total == count * (count - 1) // 2 else 1
            finally:
                os._exit(status)
        crew.append(worker)
    os.close(tell)
    before = sum(map(own_megabytes, [os.getpid(), *crew]))
    os.close(may_begin)
    os.read(done, 1)
    after = sum(map(own_megabytes, [os.getpid(), *crew]))
    os.close(may_end)
    for worker in crew:
        if os.waitpid(worker, 0)[1] != 0:
            raise RuntimeError("a worker did not read what it should")
    for descriptor in (begin, end, done):
        os.close(descriptor)
    return before, after


def show(kind: str, count: int, workers: int) -> None:
    """Build the table, let workers use it, and print what that took."""
    table: MutableMapping[str, Any] = {}
    if kind == "share.dict":
        table = share.Heap(max_size=1 << 34).root
    for name, row in rows(count):
        table[name] = row
    before, after = use(table, count, workers)
    print(
        f"{kind}: {workers + 1} processes have {before:.0f} MB together, and {after:.0f} MB after "
        f"{workers} of them have read all {count} rows",
        flush=True,
    )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="[200000]")
    parser.add_argument("--workers", type=int, default=4, help="[4]")
    options = parser.parse_args()
    for kind in ("dict", "share.dict"):
        # In a process of its own, which begins with no other table.
        builder = multiprocessing.get_context("fork").Process(
            target=show, args=(kind, options.rows, options.workers)
        )
        builder.start()
        builder.join()
        if builder.exitcode != 0:
            raise SystemExit(f"{kind} failed")


if __name__ == "__main__":
    main()
