"""How much of the machine others took while a cell was measured.

Machines are shared: the host takes CPU time from a virtual one (`steal` in /proc/stat), and other
processes run beside ours. Both change figures, so each result says how much it was.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """What had been used up to a moment, in seconds."""

    at_s: float
    busy_s: float
    """CPU time of all cores, that which the host took among it."""
    ours_s: float
    """CPU time of ours and of our ended children."""

    def others_since(self, before: Reading) -> float:
        """The share of the machine's cores that others took since then, from 0 to 1.

        The kernel counts in ticks of 10 ms, so that short times give rough shares.
        """
        cores = os.cpu_count() or 1
        could_s = (self.at_s - before.at_s) * cores
        others_s = (self.busy_s - before.busy_s) - (self.ours_s - before.ours_s)
        return min(1.0, max(0.0, others_s / could_s)) if could_s > 0 else 0.0


def reading() -> Reading:
    """Read it now."""
    return Reading(time.monotonic(), _busy_s(), _ours_s())


def _busy_s() -> float:
    """From the first line of /proc/stat, see proc_stat(5); 0 where there is none."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waits, irq, softirq, steal = map(int, first.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


def _ours_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
