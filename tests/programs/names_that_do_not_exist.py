"""A fan-out over names of which every other one does not exist.

names_that_do_not_exist.py MODE PORT
"""

import sys

MODE, PORT = sys.argv[1], int(sys.argv[2])
if MODE == "green":
    from gevent import monkey

    monkey.patch_all()

import asyncio  # noqa: E402
import json  # noqa: E402
import socket  # noqa: E402
from collections import Counter  # noqa: E402

from ungil.fanout import connect, fanout  # noqa: E402


async def visit_later(name):
    async with connect(name, PORT) as connection:
        return await connection.read()


async def visit_streams(name):
    reader, writer = await asyncio.open_connection(name, PORT)
    answer = await reader.read()
    writer.close()
    return answer


def visit(name):
    with socket.create_connection((name, PORT)) as connection:
        return connection.recv(10)


fn = {"lean": visit_later, "asyncio": visit_streams}.get(MODE, visit)
names = [name for number in range(50) for name in ("localhost", f"host{number}.invalid")]
outcomes = list(fanout(fn, names, mode=MODE, limit=50, timeout=60))
print(
    json.dumps(
        [
            Counter(outcome.ok for outcome in outcomes[::2])[True],
            # Where the resolver itself has no answer, it is the timeout's.
            sum(isinstance(outcome.exception, OSError) for outcome in outcomes[1::2]),
            sorted({type(outcome.exception).__name__ for outcome in outcomes[1::2]}),
        ]
    )
)
