"""A fan-out of a hundred items with a journal, to be killed.

    fanout_killed.py JOURNAL RAN TELL hangs|ends MODE

The first fifty items end. Those after them say to the descriptor TELL that they run, and if they
hang, they do until they are killed.
"""

import os
import sys
import time
from pathlib import Path

from ungil.fanout import fanout, sleep

out = int(sys.argv[3])
hangs = sys.argv[4] == "hangs"


def note(item):
    with Path(sys.argv[2]).open("a") as ran:
        ran.write(f"{item}\n")


async def work(item):
    note(item)
    if item >= 50 and hangs:
        os.write(out, b"!")
        await sleep(1000)
    return item * item


def work_in_thread(item):
    note(item)
    if item >= 50 and hangs:
        os.write(out, b"!")
        time.sleep(1000)
    return item * item


fn = work_in_thread if sys.argv[5] == "threads" else work
for outcome in fanout(fn, range(100), journal=sys.argv[1], limit=10, mode=sys.argv[5]):
    print(outcome.item, outcome.value, outcome.resumed)
