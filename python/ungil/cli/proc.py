"""What /proc tells of processes, and what to say where it is not, as in some sandboxes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ADVICE = "mount it: mount -t proc proc /proc"
ABSENT = f"/proc is not mounted here; {ADVICE}"

PROC = Path("/proc")
# The number of this system call on every machine (include/uapi/asm-generic/unistd.h).
PIDFD_OPEN = 434
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """A process that lives."""

    pid: int
    parent_pid: int
    uid: int
    threads: int
    cpu_s: float
    command: tuple[str, ...]


def life_of(pid: int) -> int:
    """A descriptor that can be read as soon as process `pid` has ended, see pidfd_open(2).

    OSError if there is no such process, or the kernel gives none.
    """
    # Some builds for musl lack it.
    opened = getattr(os, "pidfd_open", _pidfd_open)
    return opened(pid)


def _pidfd_open(pid: int) -> int:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    life = libc.syscall(PIDFD_OPEN, pid, 0)
    if life < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return life


def is_mounted() -> bool:
    """Whether /proc is there and shows processes."""
    return (PROC / "self" / "stat").exists()


def is_of_this_namespace() -> bool:
    """Whether processes have the numbers there that they have here."""
    try:
        return (PROC / "self").readlink() == Path(str(os.getpid()))
    except OSError:
        return False


def process(pid: int) -> Process | None:
    """What is known of process `pid`; `None` if it has ended, or runs no program."""
    folder = PROC / str(pid)
    try:
        stat = (folder / "stat").read_bytes()
        words = (folder / "cmdline").read_bytes().removesuffix(b"\0")
        uid = folder.stat().st_uid
    except OSError:
        return None
    # The name, in parentheses, may contain anything; the state follows.
    fields = stat[stat.rindex(b")") + 1 :].split()
    if not words or fields[0] in (b"Z", b"X"):
        return None
    command = tuple(word.decode(errors="replace") for word in words.split(b"\0"))
    cpu_s = (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
    return Process(pid, int(fields[1]), uid, int(fields[17]), cpu_s, command)


def processes() -> list[Process]:
    """All processes, by their numbers."""
    numbers = sorted(int(it.name) for it in PROC.iterdir() if it.name.isdecimal())
    return [found for number in numbers if (found := process(number)) is not None]


def family(pid: int) -> Iterator[int]:
    """`pid` and all that descend from it, parents first."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for it in processes():
        children[it.parent_pid].append(it.pid)
    members = [pid]
    for member in members:
        yield member
        # Taken out, because a number that is used again could close a circle.
        members += children.pop(member, [])


def cpu_seconds(pid: int, tid: int) -> float | None:
    """How long a thread has run on a processor; `None` if it has ended, or nobody counts."""
    folder = PROC / str(pid) / "task" / str(tid)
    try:
        ran_ns = int((folder / "schedstat").read_text().split()[0])
        if ran_ns:
            return ran_ns / 1e9
        stat = (folder / "stat").read_bytes()
    except (OSError, ValueError, IndexError):
        return None
    fields = stat[stat.rindex(b")") + 1 :].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def is_python(pid: int) -> bool:
    """Whether a CPython is in it, by the name of its program or of a library that it has loaded."""
    try:
        program = (PROC / str(pid) / "exe").readlink().name
        if program.startswith("python"):
            return True
        maps = (PROC / str(pid) / "maps").read_bytes()
    except OSError:
        return False
    return b"/libpython" in maps
