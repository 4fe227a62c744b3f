"""Who is in a process group, seen from outside."""

from __future__ import annotations

import time
from pathlib import Path


def wait_until_nobody_is_left_of(group: int) -> None:
    """Who was killed takes a moment to end; it may then still have to be reaped by init."""
    while any(state not in "ZX" for state in _states(group)):
        time.sleep(0.001)


def _states(group: int) -> list[str]:
    stats = map(_stat, Path("/proc").glob("[0-9]*/stat"))
    return [stat[0] for stat in stats if stat and stat[2] == str(group)]


def _stat(path: Path) -> list[str]:
    """State, parent, group and so on; empty if the process has ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []
