"""Three hundred items in each mode: says as JSON how many came out right, by mode."""

import asyncio
import json
import sys
import time

from ungil.fanout import fanout, sleep

ITEMS = 300
WAITS_S = 0.01


def in_a_thread(item):
    time.sleep(WAITS_S)
    return item * 2


async def with_asyncio(item):
    await asyncio.sleep(WAITS_S)
    return item * 2


async def lean(item):
    await sleep(WAITS_S)
    return item * 2


right = {}
for mode, function in (("threads", in_a_thread), ("asyncio", with_asyncio), ("lean", lean)):
    outcomes = list(fanout(function, range(ITEMS), mode=mode))
    expected = [(item, item * 2) for item in range(ITEMS)]
    came = [(it.item, it.value if it.ok else repr(it.exception)) for it in outcomes]
    right[mode] = sum(map(lambda one, other: one == other, came, expected))
    if len(came) != ITEMS:
        right[mode] = "{} outcomes".format(len(came))
json.dump({"items": ITEMS, "right": right}, sys.stdout)
