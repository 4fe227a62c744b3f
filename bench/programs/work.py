"""What every program here does besides its work: say how long the work took.

The clocks run around the work alone, so that neither the start of the interpreter nor that of a
tool is in the numbers. CPU time is that of all threads of the process, including any that a tool
has started in it.
"""

import argparse
import json
import os
import time
from collections.abc import Callable


def count(default: int) -> int:
    """How much to do: the first argument, or `default`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=default)
    return parser.parse_args().count


def pin() -> None:
    """Keep the calling thread on the last core, and leave the others to the tool."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(work: Callable[[], None], releases: int) -> None:
    """Do `work`, which releases the GIL `releases` times on its own account; print JSON."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "releases": releases}), flush=True)
