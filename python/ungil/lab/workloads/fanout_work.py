"""What the programs that fan out have in common: their arguments, and what they print.

    fanout_NAME.py WAY ITEMS RTT_S PORT LIMIT TIMES

The work is to wait RTT_S seconds for each of ITEMS items: asleep if PORT is 0, else for the answer
of a fake device, one connection for each of as many addresses. LIMIT is how many may be under way
at a time, as far as the way knows limits; 0 is none, or the way's own choice. It is done TIMES
times in one process. A line for each time: how many items came back, and what it took in seconds of
wall time and of CPU time. This file is for every Python since 2.7.

All of this is measured as part of whole processes, so nothing is imported that is not needed.
"""

from __future__ import print_function

import sys
import time

QUESTION = b"show version\n"

wall_clock = getattr(time, "perf_counter", time.time)
cpu_clock = getattr(time, "process_time", time.clock if sys.version_info < (3,) else None)


class Work(object):
    """What is to be done."""

    def __init__(self, items, rtt_s, port, limit):
        """As in the arguments."""
        self.items = items
        self.rtt_s = rtt_s
        self.port = port
        self.limit = limit


def host(number):
    """The address of a fake device: all of 127.0.0.0/8 is this machine."""
    return "127.1.%d.%d" % (number // 250, number % 250 + 1)


def ask(sockets, address, port):
    """A device's answer, over a blocking socket of the module `socket` or of one like it."""
    with sockets.socket() as channel:
        channel.connect((address, port))
        channel.sendall(QUESTION)
        answer = b""
        while not answer.endswith(b"\n"):
            more = channel.recv(256)
            if not more:
                raise ConnectionError("%s ended its answer early" % address)
            answer += more
        return answer


def main(ways, before=None):
    """Does it in one of the `ways`, each of which takes a Work and says how many items came back.

    `before` is what a program does only once, however often the work is done.
    """
    way, items, rtt_s, port, limit, times = sys.argv[1:]
    work = Work(int(items), float(rtt_s), int(port), int(limit))
    if before is not None:
        before(work)
    for _ in range(int(times)):
        used_s, began_s = cpu_clock(), wall_clock()
        done = ways[way](work)
        print(done, wall_clock() - began_s, cpu_clock() - used_s)
