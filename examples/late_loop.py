"""An event loop that is late, because threads of its executor compute.

A task of the loop wants to run every 5 ms, as one that sends heartbeats or answers requests does.
Four threads compute in `run_in_executor`, as is the advice for work that would block the loop.
Each second the program prints how late the task was:

    python examples/late_loop.py                  # the symptom
    ungil trace examples/late_loop.py             # the cause
    ungil run examples/late_loop.py               # the cure, from outside
    python examples/late_loop.py --policy interactive  # and from inside
"""

import argparse
import asyncio
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor


def compute(stop: threading.Event) -> None:
    """Some pure Python, until told to stop."""
    while not stop.is_set():
        sum(number * number for number in range(1000))


async def heartbeat(seconds: float) -> None:
    """Sleep 5 ms at a time; print how much longer it was."""
    for _ in range(round(seconds)):
        late: list[float] = []
        end = time.monotonic() + 1
        while (began := time.monotonic()) < end:
            await asyncio.sleep(0.005)
            late.append((time.monotonic() - began) * 1000 - 5)
        print(f"late by {statistics.median(late):.1f} ms, at most {max(late):.1f} ms", flush=True)


async def serve(seconds: float, threads: int) -> None:
    """The loop, and the threads beside it."""
    stop = threading.Event()
    with ThreadPoolExecutor(threads, thread_name_prefix="scorer") as executor:
        loop = asyncio.get_running_loop()
        for _ in range(threads):
            loop.run_in_executor(executor, compute, stop)
        await heartbeat(seconds)
        stop.set()


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3, help="[3]")
    parser.add_argument("--threads", type=int, default=4, help="that compute [4]")
    parser.add_argument("--policy", help="schedule the GIL by this policy of ungil")
    options = parser.parse_args()
    if options.policy:
        from ungil import gil

        gil.install()
        gil.set_policy(options.policy)
    asyncio.run(serve(options.seconds, options.threads))


if __name__ == "__main__":
    main()
