"""Multiplies two square matrices with workers of one kind.

    matmul.py SIZE WORKERS threads|apart|interpreters|share

threads       share ordinary lists
apart         processes that share nothing, each with a part of the rows and a product nobody sees:
              what the machine's cores give, whatever is shared
interpreters  threads with an interpreter, and a GIL, of their own each, since Python 3.12; they
              share nothing either, and are sent the matrices as bytes
share         processes with lists of ungil.share, which see and change the same product

The worker of threads and of ungil.share is the same. Runs on every Python since 2.7. Prints a line
of JSON: the wall time of starting the workers, their work, and waiting for them.
"""
from __future__ import print_function

import json
import multiprocessing
import operator
import os
import random
import sys
import threading
import time
from array import array
from collections import deque

clock = getattr(time, "perf_counter", time.time)

OWN_INTERPRETER = """
import operator, os
from array import array

def rows_of(numbers):
    flat = array("q")
    flat.frombytes(numbers)
    return [flat[first : first + size] for first in range(0, len(flat), size)]

columns = list(zip(*rows_of(right)))
product = array("q")
for row in rows_of(left):
    product.extend([sum(map(operator.mul, row, column)) for column in columns])
with open(answer, "wb") as file:
    file.write(product.tobytes())
"""


def multiply(left, right, product, rows):
    """The worker: computes rows of the product, whichever is next, and reads rows whole."""
    columns = list(zip(*[row[:] for row in right]))
    while True:
        try:
            number = rows.popleft()
        except IndexError:
            return
        row = left[number][:]
        product[number] = [sum(map(operator.mul, row, column)) for column in columns]


def crew_of(kind, left, right, product, parts):
    """Start a worker for each part, and wait for them."""
    crew = [kind(target=multiply, args=(left, right, product, part)) for part in parts]
    for worker in crew:
        worker.start()
    for worker in crew:
        worker.join()
    for worker in crew:
        if getattr(worker, "exitcode", 0) != 0:
            raise SystemExit("a worker has ended with status %s" % worker.exitcode)


def threads(left, right, product, workers):
    crew_of(threading.Thread, left, right, product, [deque(range(len(left)))] * workers)
    return product


def forked(*arguments, **keywords):
    """A process that shares what was there when it began, as it was then."""
    get_context = getattr(multiprocessing, "get_context", None)
    make = get_context("fork").Process if get_context else multiprocessing.Process
    return make(*arguments, **keywords)


def apart(left, right, product, workers):
    rows = range(len(left))
    crew_of(forked, left, right, product, [deque(rows[first::workers]) for first in range(workers)])


def share(left, right, product, workers):
    left, right, product = shared
    crew_of(forked, left, right, product, [shared_rows] * workers)
    return [row[:] for row in product]


def interpreters(left, right, product, workers):
    bytes_of = lambda rows: b"".join(array("q", row).tobytes() for row in rows)  # noqa: E731
    of_right, crew, answers = bytes_of(right), [], []
    for first in range(workers):
        read, write = os.pipe()
        answers.append(read)
        given = {
            "left": bytes_of(left[first::workers]),
            "right": of_right,
            "size": len(left),
            "answer": write,
        }
        crew.append(threading.Thread(target=run_in_own, args=(given,)))
        crew[-1].start()
    for first, answer in enumerate(answers):
        numbers = array("q")
        with open(answer, "rb") as file:
            numbers.frombytes(file.read())
        for place, number in enumerate(range(first, len(left), workers)):
            product[number] = list(numbers[place * len(left) : (place + 1) * len(left)])
    for worker in crew:
        worker.join()
    return product


def run_in_own(given):
    """Run the worker in an interpreter of its own, which then ends."""
    try:
        try:
            import _interpreters as own

            run = getattr(own, "exec")  # noqa: B009, for 2.7
        except ImportError:
            import _xxsubinterpreters as own

            run = own.run_string
        number = own.create()
        failed = run(number, OWN_INTERPRETER, given)
        own.destroy(number)
        if failed is not None:
            raise RuntimeError(failed)
    except BaseException as error:
        # Whoever reads the answer would wait for ever.
        print(error, file=sys.stderr)
        os._exit(1)


def is_product(left, right, product):
    """Whether it is, found out in the time of reading it (Freivalds, 1977)."""
    some = [random.randrange(1000) for _ in left]
    by = lambda rows, column: [sum(map(operator.mul, row, column)) for row in rows]  # noqa: E731
    return by(product, some) == by(left, by(right, some))


size, workers, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random.seed(1)
left, right = ([[random.randrange(100) for _ in range(size)] for _ in range(size)] for _ in "12")
if how == "share":
    from ungil.share import Heap

    heap = Heap(max_size=1 << 30)
    shared = [heap.share(one) for one in (left, right, [None] * size)]
    shared_rows = heap.share(deque(range(size)))
ways = {"threads": threads, "apart": apart, "interpreters": interpreters, "share": share}
begun = clock()
product = ways[how](left, right, [None] * size, workers)
wall_s = clock() - begun
if how != "apart" and not is_product(left, right, product):
    raise SystemExit("the product is wrong")
print(json.dumps({"wall_s": wall_s}))
