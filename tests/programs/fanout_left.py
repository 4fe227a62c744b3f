"""A fan-out that is left to the end of its program, in a way that the argument names.

fanout_left.py nothing|exit|del
"""

import sys

from ungil.fanout import fanout, sleep


async def task(item):
    try:
        await sleep(1000 if item else 0)
    finally:
        await sleep(0.001)
        print("cleaned", item)


outcomes = fanout(task, range(3), mode="lean")
next(outcomes)
if sys.argv[1] == "exit":
    raise SystemExit(0)
if sys.argv[1] == "del":
    del task
