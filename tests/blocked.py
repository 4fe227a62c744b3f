"""What the main thread of a process is blocked in, seen from outside."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path

# The numbers of system calls.
_NUMBERS = {
    "x86_64": {
        "read": 0,
        "futex": 202,
        "clock_nanosleep": 230,
        "epoll_wait": 232,
        "epoll_pwait": 281,
        "epoll_pwait2": 441,
    },
    "aarch64": {
        "read": 63,
        "futex": 98,
        "clock_nanosleep": 115,
        "epoll_pwait": 22,
        "epoll_pwait2": 441,
    },
}[platform.machine()]
_LOOPS = {"clock_nanosleep", "epoll_wait", "epoll_pwait", "epoll_pwait2"}


def _wait_until(pid: int, is_there: Callable[[str, list[str]], bool]) -> None:
    names = {str(number): name for name, number in _NUMBERS.items()}
    call = Path(f"/proc/{pid}/syscall")
    while True:
        # "running", "-1", or a number and its arguments.
        number, *arguments = call.read_text().split()
        if number in names and is_there(names[number], arguments):
            return
        time.sleep(0.001)


def wait_until_in_its_loop(pid: int) -> None:
    """Until an event loop waits for time or descriptors."""
    _wait_until(pid, lambda name, _: name in _LOOPS)


def wait_until_in_a_lock(pid: int) -> None:
    """Until it waits for another thread."""
    _wait_until(pid, lambda name, _: name == "futex")


def wait_until_it_reads_its_input(pid: int) -> None:
    """Until it is in a read of descriptor 0, and not of a module that it imports."""
    _wait_until(pid, lambda name, arguments: name == "read" and arguments[0] == "0x0")
