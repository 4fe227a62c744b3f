"""What every program here does besides its work: say how long the work took.

The clocks run around the work alone, so that neither the start of the interpreter nor that of a
tool is in the numbers. CPU time is that of all threads of the process, including any that a tool
has started in it.
"""

import argparse
import json
import os
import sys
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
    say({"wall_s": wall_s, "cpu_s": cpu_s, "releases": releases})


def say(result: "dict[str, object]") -> None:
    """Print a line of JSON."""
    print(json.dumps(result), flush=True)


def options(description: "str | None") -> argparse.ArgumentParser:
    """The arguments of the programs that are run under several schedulers."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--interval", type=float, help="the switch interval, in seconds")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the arguments and set the switch interval that they ask for."""
    read = parser.parse_args()
    if read.interval is not None:
        sys.setswitchinterval(read.interval)
    return read


def say_result(result: "dict[str, object]") -> None:
    """Print what came out, and the number of the policy under which it did."""
    import ctypes  # Here, so that it is loaded after the work.

    try:
        policy = ctypes.CDLL(None).ungil_policy_v1(ctypes.byref(ctypes.c_uint64()))
    except AttributeError:
        policy = 0  # Without the hook there is only CPython's own.
    say({**result, "policy": policy})
