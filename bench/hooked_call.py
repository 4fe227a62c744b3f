"""What it costs a hooked call that the stub, and not the loader of the program, opened the hook.

    python bench/hooked_call.py [--rounds N] [--python PATH] [--json FILE] [--quick]

The thread-local memory of a library that is opened later is not in the block that a thread begins
with. Both are asked for by the same function of the loader (`__tls_get_addr`), but they are not in
the same place. A second thread lets go of the GIL and takes it again, which is two hooked calls at
least, by `zlib.adler32` of 5,200 bytes: no system call is made and nobody waits. The shortest mean
of 60 batches of 300 is taken, of the processor's time of that thread. `bare` is without the hook,
which no variant with it can be as fast as.
"""

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from interleaving import Measured, Runs, Target, columns, interleave, parse, parser, report
from rich.table import Table

from ungil import _native

MOST_NS = 5.0
POLICY = {"UNGIL_POLICY": "fair"}
PROGRAM = """
import json, threading, time, zlib
data, taken_ns = bytes(5200), []
def run():
    for _ in range(60):
        begun_ns = time.thread_time_ns()
        for _ in range(300):
            zlib.adler32(data)
        taken_ns.append((time.thread_time_ns() - begun_ns) / 300)
thread = threading.Thread(target=run)
thread.start()
thread.join()
print(json.dumps(min(taken_ns)))
"""


@dataclass(frozen=True)
class Way:
    """How the hook comes into the program."""

    name: str
    variables: dict[str, str] = field(default_factory=dict[str, str], hash=False)


BARE = Way("bare")
HOOK = Way("hook", {"LD_PRELOAD": _native.hook_path(), **POLICY})
STUB = Way("stub", {"LD_PRELOAD": _native.preload_value(None), **POLICY})
WAYS = [BARE, HOOK, STUB]


def main() -> None:
    """Measures and prints."""
    options = parse(parser(__doc__, rounds=31))
    report(options, ["ungil"], _sections(options), _targets)


def _sections(options: argparse.Namespace) -> Iterator[tuple[Runs, Table]]:
    """One setting."""

    def measure(way: Way) -> Measured:
        environment = {"PATH": os.environ["PATH"], **way.variables}
        words = [options.python, "-c", PROGRAM]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return {"ns": json.loads(done.stdout)}

    runs = interleave("release and take", WAYS, measure, options)
    table = columns(runs.setting, "variant", "ns", "more than bare, ns", "more than hook, ns")
    for way in WAYS:
        more = [f"{statistics.median(_more_ns(runs, way, base)):+.1f}" for base in (BARE, HOOK)]
        table.add_row(way.name, f"{runs.median(way, _ns):.1f}", *more)
    yield runs, table


def _ns(measured: Measured) -> float:
    ns: float = measured["ns"]
    return ns


def _more_ns(runs: Runs, way: Way, base: Way) -> list[float]:
    """How much longer it took than another way in the same round."""
    return [
        one - other for one, other in zip(runs.each(way, _ns), runs.each(base, _ns), strict=True)
    ]


def _targets(taken: list[Runs]) -> Iterator[Target]:
    """The stub costs a call next to nothing."""
    (runs,) = taken
    more_ns = sorted(_more_ns(runs, STUB, HOOK))
    median_ns = statistics.median(more_ns)
    yield Target(
        f"opened by the stub, the hook takes at most {MOST_NS:.0f} ns more",
        median_ns <= MOST_NS,
        f"{median_ns:+.1f} ns ({more_ns[0]:+.1f} to {more_ns[-1]:+.1f})",
    )


if __name__ == "__main__":
    main()
