"""A pool that forks all the time: a worker of it ends after three tasks.

It says "ready", checks itself until its input ends, and then says how many answers there were, and
how many were wrong.
"""

import json
import multiprocessing
import select
import sys
import warnings

import known  # noqa: F401
from work import answer

# From 3.12 on CPython warns of threads beside a fork; the pool itself has some.
warnings.simplefilter("ignore", DeprecationWarning)

if __name__ == "__main__":
    answers = wrong = 0
    with multiprocessing.get_context("fork").Pool(3, maxtasksperchild=3) as pool:
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            numbers = range(1000 + answers % 1000, 1030 + answers % 1000)
            # Its own choice of the chunk size divides by the number of workers, which may be none.
            found = pool.map_async(answer, numbers, chunksize=10).get(120)
            answers += len(found)
            wrong += sum(it != sum(range(number)) for it, number in zip(found, numbers))
    print(json.dumps({"answers": answers, "wrong": wrong}), flush=True)
