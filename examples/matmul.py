"""Matrices multiplied by threads or by processes, with the same worker code.

The experiment of the POSH paper (Valvåg, Jacobsen and Kvalnes, 2003), which first showed that
Python processes can use shared objects as threads do, and that they scale where threads do not. The
worker below sees three lists of lists and a deque. Threads get ordinary ones, processes shared
ones; it cannot tell the difference.

    python examples/matmul.py --how threads --workers 2
    python examples/matmul.py --how processes --workers 2
"""

import argparse
import multiprocessing
import operator
import random
import threading
import time
from collections import deque
from collections.abc import MutableSequence, Sequence
from typing import TypeAlias

from ungil import share

Matrix: TypeAlias = Sequence[Sequence[int]]
# What a worker has to do with the numbers of rows; deque and share.deque can both do it.
Numbers: TypeAlias = deque[int] | share.deque[int]


def multiply(
    left: Matrix, right: Matrix, product: MutableSequence[Sequence[int]], rows: Numbers
) -> None:
    """The worker: computes rows of the product, whichever is next. Rows are read whole, as slices.

    Workers take the numbers of rows from one deque, so that none waits for one on a slower core.
    """
    columns = list(zip(*[row[:] for row in right], strict=True))
    while True:
        try:
            number = rows.popleft()
        except IndexError:
            return
        row = left[number][:]
        product[number] = [sum(map(operator.mul, row, column)) for column in columns]


def matrix(size: int, seed: int) -> list[list[int]]:
    """A square matrix of small numbers, the same for the same seed."""
    numbers = random.Random(seed)
    return [[numbers.randrange(100) for _ in range(size)] for _ in range(size)]


def timed(size: int, workers: int, how: str) -> float:
    """Multiply two matrices, check the product, and return the seconds that the workers took.

    `how` is "threads", "processes", or "apart": processes that share nothing, each with its part of
    the rows and a product that nobody sees. That is what the machine gives, whatever is shared.
    """
    plain_left, plain_right = matrix(size, seed=1), matrix(size, seed=2)
    left: Matrix = plain_left
    right: Matrix = plain_right
    product: MutableSequence[Sequence[int]] = list[Sequence[int]]([()]) * size
    rows: Numbers = deque(range(size))
    start = threading.Thread if how == "threads" else multiprocessing.get_context("fork").Process
    if how == "processes":
        heap = share.Heap(max_size=1 << 30)
        left, right = heap.share(plain_left), heap.share(plain_right)
        product, rows = heap.share([()] * size), heap.share(rows)
    parts: list[Numbers] = [rows] * workers
    if how == "apart":
        parts = [deque(range(first, size, workers)) for first in range(workers)]
    began = time.perf_counter()
    crew = [start(target=multiply, args=(left, right, product, part)) for part in parts]
    for worker in crew:
        worker.start()
    for worker in crew:
        worker.join()
    seconds = time.perf_counter() - began

    if how == "apart":
        return seconds
    expected: list[Sequence[int]] = [[]] * size
    multiply(plain_left, plain_right, expected, deque(range(size)))
    if [row[:] for row in product] != expected:
        raise RuntimeError("the product is wrong")
    return seconds


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2, help="[2]")
    parser.add_argument("--how", choices=["threads", "processes", "apart"], default="processes")
    parser.add_argument("--size", type=int, default=200, help="of the matrices [200]")
    options = parser.parse_args()
    seconds = timed(options.size, options.workers, options.how)
    print(
        f"{options.size}x{options.size} by {options.workers} {options.how}: {seconds:.3f} s"
        + (", and the product is right" if options.how != "apart" else "")
    )


if __name__ == "__main__":
    main()
