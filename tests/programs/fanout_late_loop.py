"""Items that only wait for a loop which comes late are in time.

fanout_late_loop.py lean|asyncio|uvloop|green
"""

import socket
import sys
import time

how = sys.argv[1]
if how == "green":
    from gevent import monkey

    monkey.patch_all()
    from gevent.monkey import get_original

    block = get_original("time", "sleep")
else:
    block = time.sleep
if how == "asyncio":
    sys.modules["uvloop"] = None
from ungil.fanout import fanout, sleep, wait_readable  # noqa: E402

near, far = socket.socketpair()


def tell():
    # While it computes, the others have waited long enough, and nobody lets them go on.
    block(0.2)
    far.send(b"x")
    block(1.0)


def green(item):
    if item == "sleeps":
        time.sleep(0.3)
    elif item == "reads":
        assert near.recv(1) == b"x"
    else:
        time.sleep(0.1)
        tell()


async def coroutine(item):
    if item == "sleeps":
        await sleep(0.3)
    elif item == "reads":
        await wait_readable(near)
    else:
        await sleep(0.1)
        tell()


mode = "asyncio" if how == "uvloop" else how
fn = green if how == "green" else coroutine
outcomes = list(fanout(fn, ["sleeps", "reads", "computes"], mode=mode, timeout=0.8))
assert all(outcome.ok for outcome in outcomes), [outcome.exception for outcome in outcomes]
