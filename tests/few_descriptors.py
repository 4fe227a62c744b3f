"""A program: 20,000 hosts, and 1,024 descriptors to reach them with.

    python tests/few_descriptors.py MODE LIMIT PORT_THAT_HANGS_UP PORT_THAT_SAYS_NOTHING

One host in twenty accepts and says nothing. Prints, as JSON, how often which kind of outcome came,
and what the fan-out says of its limit.
"""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# (others' libraries have no types, and much here is wrong on purpose)

import sys

MODE, LIMIT, HANGS_UP, SILENT = sys.argv[1:5]
if MODE == "green":
    from gevent import monkey

    monkey.patch_all()

import json  # noqa: E402
import resource  # noqa: E402
import socket  # noqa: E402
from collections import Counter  # noqa: E402

import loopback  # noqa: E402

from ungil.fanout import connect, fanout  # noqa: E402

HOSTS = int(sys.argv[5]) if sys.argv[5:] else 20_000
TIMEOUT_S = 0.5


def port_of(address):
    """One in twenty says nothing."""
    return int(SILENT if int(address.rpartition(".")[2]) % 20 == 0 else HANGS_UP)


async def visit_later(address):
    """For modes that run coroutines."""
    async with connect(address, port_of(address)) as connection:
        return await connection.read()


def visit(address):
    """For modes that run functions."""
    with socket.create_connection((address, port_of(address)), timeout=TIMEOUT_S) as connection:
        return connection.recv(10)


def main():
    """One fan-out."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    fn = visit_later if MODE in ("lean", "asyncio") else visit
    limit = LIMIT if LIMIT == "auto" else int(LIMIT)
    hosts = loopback.addresses(HOSTS)
    outcomes = fanout(fn, hosts, mode=MODE, limit=limit, timeout=2 * TIMEOUT_S)
    kinds = Counter()
    for outcome in outcomes:
        error = outcome.exception
        if error is not None and getattr(error, "errno", None) is not None:
            kinds[f"{type(error).__name__} {error.errno}"] += 1
        else:
            kinds[type(error).__name__] += 1
        # What became of a host is not kept.
        del outcome, error
    print(json.dumps(kinds))


if __name__ == "__main__":
    main()
