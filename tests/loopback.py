"""Hosts on loopback: a server in a process of its own, which answers for all of 127.0.0.0/8.

A listener of such a server is bound to every address but hears the loopback device only. So a host
is an address, how it behaves is a port, and twenty thousand of them cost one descriptor a port.
The process ends with its standard input: also when the tests are killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import Any


def addresses(number: int, first: str = "127.1.0.1") -> list[str]:
    """So many distinct addresses of the loopback device."""
    start = int(IPv4Address(first))
    return [str(IPv4Address(address)) for address in range(start, start + number)]


def bound() -> socket.socket:
    """A socket at a free port of all loopback addresses; as long as nobody listens it refuses."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Needs no privilege since Linux 5.7.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    made.bind(("0.0.0.0", 0))
    return made


def listening() -> socket.socket:
    """A socket that accepts connections to all loopback addresses; its backlog is long."""
    made = bound()
    made.listen(4096)
    made.setblocking(False)
    return made


def as_many_descriptors_as_allowed() -> None:
    """The usual 1,024 are too few for a server of several hundred hosts and a client beside it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def announced_until_the_end(announcement: dict[str, Any]) -> None:
    """What a server does: tell on standard output where it is, and live as long as its input."""
    print(json.dumps(announcement), flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)
    # As if somebody pulled its plug: clients that are still connected are not waited for.
    os._exit(0)


@contextmanager
def started(script: str, *arguments: str) -> Generator[dict[str, Any]]:
    """What a server announces that runs while the block does."""
    words = [sys.executable, script, *arguments]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line:
            raise RuntimeError(f"{script} ended with status {server.wait()}")
        yield json.loads(line)
        # Its input ends here.
        server.communicate()
