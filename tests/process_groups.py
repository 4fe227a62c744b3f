"""Who is in a process group, who is whose child, and who is stopped, seen from outside."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGSTOP

# What `ungil trace` calls its second process, which stands in the group of the program.
WITNESS = "signal-witness"


def wait_until_nobody_is_left_of(group: int) -> None:
    """Who was killed takes a moment to end; it may then still have to be reaped by init."""
    while any(state not in "ZX" for state in _states(group)):
        time.sleep(0.001)


def wait_until_stopped(pid: int, is_stopped: bool = True) -> None:
    """Until the process is stopped, or with False until it goes on."""
    while (_stat(Path(f"/proc/{pid}/stat"))[0] == "T") is not is_stopped:
        time.sleep(0.001)


def wait_until_gone(pid: int) -> None:
    """Until the process has ended; it may then still have to be reaped by init."""
    while (_stat(Path(f"/proc/{pid}/stat")) or "X")[0] not in "ZX":
        time.sleep(0.001)


def wait_until_all_is_blocked(pid: int, thread: str) -> None:
    """Until the process has a thread of this name, and each of its threads blocks all signals."""
    everything = (1 << 64) - 1 - sum(1 << number - 1 for number in (SIGKILL, SIGSTOP))
    threads: list[tuple[str, int]] = []
    while thread not in dict(threads) or {blocked for _, blocked in threads} != {everything}:
        threads = list(_threads(pid))
        time.sleep(0.001)


def children_of(pid: int) -> dict[str, int]:
    """The children of a process, by the name that the kernel knows."""
    task = Path(f"/proc/{pid}/task/{pid}/children")
    pids = map(int, task.read_text(encoding="ascii").split())
    return {Path(f"/proc/{it}/comm").read_text(encoding="utf-8").rstrip(): it for it in pids}


def program_of(ungil: int) -> int:
    """The program that `ungil trace`, with that process id, runs."""
    (program,) = (pid for name, pid in children_of(ungil).items() if name != WITNESS)
    return program


def _states(group: int) -> list[str]:
    stats = map(_stat, Path("/proc").glob("[0-9]*/stat"))
    return [stat[0] for stat in stats if stat and stat[2] == str(group)]


def _threads(pid: int) -> Iterator[tuple[str, int]]:
    """The name of each thread of a process, and which signals it blocks."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            (blocked,) = re.findall(r"SigBlk:\s*(\w+)", (task / "status").read_text())
            yield (task / "comm").read_text().rstrip(), int(blocked, 16)


def _stat(path: Path) -> list[str]:
    """State, parent, group and so on; empty if the process has ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []
