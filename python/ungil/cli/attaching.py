"""What commands say of a process that runs: how it was attached to, or why it cannot be."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager

from ungil._native import look_at_recorded
from ungil.cli import proc
from ungil.errors import UsageError
from ungil.formatting import duration, reason

# Another ungil attaches in less than that, or has given up.
PATIENCE_S = 60.0
PAUSE_S = 0.005


def way_in(stopped_s: float | None) -> str:
    """How a process was attached to, from what `Recorder.attach` returned."""
    if stopped_s is None:
        return "through its control page"
    return f"by ptrace: it stopped one of its threads for {duration(stopped_s)}"


@contextmanager
def in_turn(pid: int) -> Generator[None]:
    """Attach to process `pid` inside, after whoever else is about to.

    The kernel lets one process trace another, and who looked whether somebody records it has to
    know that nobody has begun since. The lock is on the folder in /proc, so nothing of it stays.
    """
    try:
        folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # Who attaches finds out why, and says it.
        yield
        return
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _is_locked(folder) and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(folder)


def _is_locked(folder: int) -> bool:
    """Whether this process has the lock now; also where there are no such locks."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def refuse_if_recorded(pid: int, who: str) -> None:
    """UsageError if `who` would end the recording of process `pid` by another ungil.

    A process tells one recorder at a time, and the other one would not know that it is over.
    """
    if look_at_recorded(pid) is not None:
        raise UsageError(
            f"another ungil is recording process {pid}, and {who} would end that recording; "
            f"wait until it ends, or look once with: ungil dump {pid}"
        )


def refusal(pid: int, error: OSError | RuntimeError, cannot_be: str = "attached to") -> UsageError:
    """What the native part says, in a sentence about process `pid`."""
    if not proc.is_mounted():
        return UsageError(f"process {pid} cannot be inspected: {proc.ABSENT}")
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return UsageError(f"there is no process {pid}")
    why = reason(error) if isinstance(error, OSError) else str(error)
    return UsageError(f"process {pid} cannot be {cannot_be}: {why}")
