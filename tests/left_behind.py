"""Kills what a process of the tests leaves behind when it ends, however that ends.

A test that is killed, by the suite's watchdog or by somebody who has waited long enough, runs no
`finally`. Its programs would go on, and a program whose recorder is killed does so by design. A
process group or a signal at the death of a parent would miss those, and daemons. So programs are
known by a variable that they inherit, and a process outside waits for the end of the tests.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

VARIABLE = "STARTED_BY_TESTS"


def watch() -> None:
    """From now on, what this process starts does not outlive it; nothing new if that was so."""
    if VARIABLE in os.environ:
        return
    pid = os.getpid()
    born = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    command = [sys.executable, "-IS", __file__, str(pid), f"{pid}-{born}"]
    # In no group that a signal of a test or a terminal reaches.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.read() == b"watching"
        watcher.returncode = 0  # It stays.
    os.environ[VARIABLE] = f"{pid}-{born}"


def main() -> None:
    """Wait for the end of a process, then kill all that it marked."""
    pid, mark = int(sys.argv[1]), f"{VARIABLE}={sys.argv[2]}".encode()
    tests = os.pidfd_open(pid)
    os.write(1, b"watching")
    os.close(1)
    select.select([tests], [], [])
    # What is killed may just have started something.
    while marked := [it for it in running() if has(it, mark)]:
        for it in marked:
            with suppress(ProcessLookupError):
                os.kill(it, signal.SIGKILL)


def running() -> list[int]:
    """All processes, by their numbers."""
    return [int(it.name) for it in Path("/proc").iterdir() if it.name.isdecimal()]


def has(pid: int, mark: bytes) -> bool:
    """Whether a process lives that was started with this variable."""
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


if __name__ == "__main__":
    main()
