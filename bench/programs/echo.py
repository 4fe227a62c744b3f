"""Answers datagrams in one thread while others compute.

Prints its port. The datagrams `begin` and `end` bound the stretch that is measured: how many calls
of `step` the computing threads made in it, and what it took. Ends after `end`.
"""

import os
import resource
import socket
import threading
import time

import work
from one_cpu_thread import step

BEGIN, END = b"begin", b"end"
# Calls between two looks at whether to end.
CALLS = 50


class Reading:
    """What was used and done up to now."""

    def __init__(self, calls: "list[int]") -> None:
        """Reads all clocks."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.wall_s = time.perf_counter()
        self.cpu_s = time.process_time()
        self.calls = sum(calls)
        self.context_switches = usage.ru_nvcsw + usage.ru_nivcsw

    def since(self, before: "Reading") -> "dict[str, float]":
        """The differences."""
        return {name: value - getattr(before, name) for name, value in vars(self).items()}


def compute(core: "int | None", number: int, calls: "list[int]", over: threading.Event) -> None:
    """Call `step` and count the calls, until it is over."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    total, is_over = 0, over.is_set
    while not is_over():
        for _ in range(CALLS):
            total = step(total)
        calls[number] += CALLS


def answer(core: "int | None", channel: socket.socket, calls: "list[int]") -> "dict[str, float]":
    """Send every datagram back; returns what was measured from `begin` to `end`."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    before = Reading(calls)
    while True:
        message, sender = channel.recvfrom(64)
        if message == BEGIN:
            before = Reading(calls)
        if message == END:
            measured = Reading(calls).since(before)
        channel.sendto(message, sender)
        if message == END:
            return measured


def main() -> None:
    """Serves."""
    parser = work.options(__doc__)
    parser.add_argument("--threads", type=int, required=True, help="that compute")
    parser.add_argument(
        "--cores", type=int, nargs=2, help="for the computing threads, and for the other"
    )
    options = work.parse(parser)
    cpu_core, echo_core = options.cores or (None, None)
    channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    channel.bind(("127.0.0.1", 0))
    calls, over = [0] * options.threads, threading.Event()
    threads = [
        threading.Thread(target=compute, args=(cpu_core, number, calls, over))
        for number in range(options.threads)
    ]
    for thread in threads:
        thread.start()
    work.say({"port": channel.getsockname()[1]})
    measured = answer(echo_core, channel, calls)
    over.set()
    for thread in threads:
        thread.join()
    work.say_result(measured)


if __name__ == "__main__":
    main()
