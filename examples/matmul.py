"""Matrices multiplied by threads or by processes, with the same worker code.

The experiment of the POSH paper (Viegas, 2003), which first showed that Python processes can use
shared objects as threads do, and that they scale where threads do not. The worker below sees three
lists of lists. Threads get ordinary ones, processes shared ones; it cannot tell the difference.

    python examples/matmul.py --how threads --workers 2
    python examples/matmul.py --how processes --workers 2
"""

import argparse
import multiprocessing
import operator
import random
import threading
import time

from ungil import share


def multiply(left, right, product, rows):
    """The worker: computes some rows of the product. Each row is read whole, as a slice."""
    columns = list(zip(*[row[:] for row in right], strict=True))
    for number in rows:
        row = left[number][:]
        product[number] = [sum(map(operator.mul, row, column)) for column in columns]


def matrix(size: int, seed: int) -> list[list[int]]:
    """A square matrix of small numbers, the same for the same seed."""
    numbers = random.Random(seed)
    return [[numbers.randrange(100) for _ in range(size)] for _ in range(size)]


def timed(size: int, workers: int, how: str) -> float:
    """Multiply two matrices, check the product, and return the seconds that the workers took."""
    plain = [matrix(size, seed=1), matrix(size, seed=2), [None] * size]
    if how == "processes":
        heap = share.Heap(max_size=1 << 30)
        start = multiprocessing.get_context("fork").Process
        left, right, product = (heap.share(one) for one in plain)
    else:
        start = threading.Thread
        left, right, product = plain
    began = time.perf_counter()
    crew = [
        start(target=multiply, args=(left, right, product, range(first, size, workers)))
        for first in range(workers)
    ]
    for worker in crew:
        worker.start()
    for worker in crew:
        worker.join()
    seconds = time.perf_counter() - began

    expected = [None] * size
    multiply(plain[0], plain[1], expected, range(size))
    if [row and row[:] for row in product] != expected:
        raise RuntimeError("the product is wrong")
    return seconds


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="[2]")
    parser.add_argument("--how", choices=["threads", "processes"], default="processes")
    parser.add_argument("--size", type=int, default=200, help="of the matrices [200]")
    options = parser.parse_args()
    seconds = timed(options.size, options.workers, options.how)
    print(
        f"{options.size}x{options.size} by {options.workers} {options.how}: {seconds:.3f} s, "
        "and the product is right"
    )


if __name__ == "__main__":
    main()
