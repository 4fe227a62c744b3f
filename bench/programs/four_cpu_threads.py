"""Four threads compute and contend for the GIL, each a fixed number of function calls.

All releases are forced ones, one a switch interval. The argument is the number of calls a thread.
"""

import threading

import work
from one_cpu_thread import compute

CALLS = 150_000
THREADS = 4


def run(calls: int) -> None:
    """Compute in all threads at once."""
    threads = [
        threading.Thread(target=compute, args=(calls,), name=f"cpu-{number}")
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    calls = work.count(CALLS)
    work.measure(lambda: run(calls), releases=0)
