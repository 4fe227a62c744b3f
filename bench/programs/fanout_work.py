"""What the programs that fan out have in common: their arguments, and what they print.

    fanout_NAME.py WAY ITEMS RTT_S PORT LIMIT TIMES

The work is to wait RTT_S seconds for each of ITEMS items: asleep if PORT is 0, else for the answer
of a fake device, one connection for each of as many addresses. LIMIT is how many may be under way
at a time, as far as the way knows limits; 0 is none, or the way's own choice. It is done TIMES
times in one process. A line for each time: how many items came back, and what it took in seconds of
wall time and of CPU time.

All of this is measured as part of whole processes, so nothing is imported that is not needed.
"""

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

QUESTION = b"show version\n"


class Work:
    """What is to be done."""

    def __init__(self, items: int, rtt_s: float, port: int, limit: int) -> None:
        """As in the arguments."""
        self.items = items
        self.rtt_s = rtt_s
        self.port = port
        self.limit = limit


def host(number: int) -> str:
    """The address of a fake device: all of 127.0.0.0/8 is this machine."""
    return f"127.1.{number // 250}.{number % 250 + 1}"


def ask(sockets: "ModuleType", address: str, port: int) -> bytes:
    """A device's answer, over a blocking socket of the module `socket` or of one like it."""
    with sockets.socket() as channel:
        channel.connect((address, port))
        channel.sendall(QUESTION)
        answer = b""
        while not answer.endswith(b"\n"):
            more = channel.recv(256)
            if not more:
                raise ConnectionError(f"{address} ended its answer early")
            answer += more
        return answer


def main(ways: "dict[str, Callable[[Work], int]]", before: "Callable[[Work], Any] | None" = None):
    """Does it in one of the `ways`, each of which returns how many items came back.

    `before` is what a program does only once, however often the work is done.
    """
    way, items, rtt_s, port, limit, times = sys.argv[1:]
    work = Work(int(items), float(rtt_s), int(port), int(limit))
    if before is not None:
        before(work)
    for _ in range(int(times)):
        used_s, began_s = time.process_time(), time.perf_counter()
        done = ways[way](work)
        print(done, time.perf_counter() - began_s, time.process_time() - used_s)
