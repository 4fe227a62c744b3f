"""One run of a command, what it used, and whether somebody else took the machine meanwhile.

Machines are shared: the host takes CPU time (`steal` in /proc/stat), and so do other processes.
Both are read around every sample, so that a disturbed one can be repeated. A sample should begin
when the others rest: cores of a virtual machine may share one real core, and a neighbour then costs
CPU time, not only wall time.
"""

import ctypes
import json
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# /proc/stat counts in ticks (of 10 ms), and what is busy not at the moments when we are counted.
STEAL_DOUBT_S = 1 / TICKS_PER_S
FOREIGN_DOUBT_S = 3 / TICKS_PER_S
# The most that may be stolen, or be used by others, as a share of the sample's own CPU time.
MOST_STOLEN = 0.02
MOST_FOREIGN = 0.10


class Failed(Exception):
    """The command printed no result."""


@dataclass(frozen=True)
class Sample:
    """What one run used, in seconds."""

    wall_s: float
    """Of the work, by the program's own clock."""
    cpu_s: float
    """Of the work, in all threads of the program."""
    releases: int
    """How often the work released the GIL of its own accord."""
    tree_wall_s: float
    """From the start of the command to the end of all its processes."""
    tree_cpu_s: float
    """Of all processes of the command: interpreter start, program and tool."""
    stolen_s: float
    """CPU time that the host took from this machine meanwhile."""
    foreign_s: float
    """CPU time that other processes of this machine used meanwhile."""

    def disturbance(self) -> str | None:
        """`stolen` or `foreign` if that much of the machine was, else None."""
        return disturbance(self.stolen_s, self.foreign_s, self.tree_cpu_s)


class Machine(NamedTuple):
    """CPU seconds of all cores since the machine was started."""

    busy_s: float
    stolen_s: float


def disturbance(stolen_s: float, foreign_s: float, own_s: float) -> str | None:
    """What took too much beside `own_s` seconds of CPU time, `stolen` or `foreign`, if any did."""
    if stolen_s > own_s * MOST_STOLEN + STEAL_DOUBT_S:
        return "stolen"
    if foreign_s > own_s * MOST_FOREIGN + FOREIGN_DOUBT_S:
        return "foreign"
    return None


def adopt_orphans() -> None:
    """Become the parent of what a command leaves behind, so that its CPU time can be counted.

    A tool that does not wait for the program it started would otherwise look cheap.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def wait_for_quiet(patience_s: float) -> None:
    """Wait until nobody computes, but no longer than `patience_s`."""
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        before = machine()
        time.sleep(0.1)
        if machine().busy_s - before.busy_s <= 1 / TICKS_PER_S:
            return


def sample(command: Sequence[str], environment: Mapping[str, str]) -> Sample:
    """Run `command`, whose program prints its result as the last line of JSON on stdout."""
    before = machine()
    used_s, began_s = children_cpu(), time.perf_counter()
    run = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    _reap()
    tree_wall_s, tree_cpu_s = time.perf_counter() - began_s, children_cpu() - used_s
    after = machine()
    stolen_s, busy_s = after.stolen_s - before.stolen_s, after.busy_s - before.busy_s
    lines = [line for line in run.stdout.splitlines() if line.startswith('{"wall_s"')]
    if not lines:
        said = (run.stderr or run.stdout).strip().splitlines()
        raise Failed(f"status {run.returncode}: {said[-1] if said else 'no output'}")
    result = json.loads(lines[-1])
    return Sample(
        result["wall_s"],
        result["cpu_s"],
        result["releases"],
        tree_wall_s,
        tree_cpu_s,
        stolen_s,
        max(0.0, busy_s - tree_cpu_s),
    )


def machine() -> Machine:
    """Read from the first line of /proc/stat, in proc_stat(5)."""
    first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    ticks = [int(word) for word in first.split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
    return Machine((user + nice + system + irq + softirq) / TICKS_PER_S, steal / TICKS_PER_S)


def children_cpu() -> float:
    """CPU seconds of all children that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap() -> None:
    """Wait for what the command left behind."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
