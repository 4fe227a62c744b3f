"""Starting a program and waiting for it so that it cannot tell that somebody stands between.

Standard streams, other inherited descriptors, working directory, process group and terminal are
the program's own. Signals, while it runs:

| signal                      | who gets it besides the program | what ungil does           |
|-----------------------------|---------------------------------|---------------------------|
| SIGINT, SIGQUIT             | ungil (the terminal sends both) | nothing: it waits         |
| SIGTERM, SIGHUP, SIGUSR1, 2 | only ungil (`kill PID`)         | sends it to the program   |
| SIGTSTP, SIGCONT            | ungil (the terminal sends both) | stops, goes on, with it   |
| any that was ignored        |                                 | leaves it ignored in both |

What ungil does is done by handlers, because exec turns a handler back into the default and keeps
what was ignored: the program starts with the dispositions with which ungil was started.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

from ungil.cli.program import Program

SHARED = (signal.SIGINT, signal.SIGQUIT)
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

Handler = Callable[[int, FrameType | None], None]


class Child:
    """A program that was, or is about to be, started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._alive = False
        self._early: list[int] = []

    def start(self, program: Program, environment: Mapping[str, str]) -> None:
        """Start `program`; OSError if the system refuses."""
        self._process = subprocess.Popen(
            program.argv, executable=program.executable, env=environment, close_fds=False
        )
        self._alive = True
        while self._early:
            self._process.send_signal(self._early.pop(0))

    @property
    def pid(self) -> int:
        """The process id of the started program."""
        return self._started().pid

    def wait(self) -> int:
        """Wait for the end: the exit status, or minus the number of the signal that killed it."""
        process = self._started()
        # WNOWAIT keeps the process id taken until no handler can send a signal to it any more.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self._alive = False
        return process.wait()

    def forward(self, number: int, _frame: FrameType | None) -> None:
        """Hand a signal on; one that comes before the program has started waits for it."""
        if self._process is None:
            self._early.append(number)
        elif self._alive:
            self._process.send_signal(number)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the program was not started")
        return self._process


@contextmanager
def signals_for(child: Child) -> Generator[None]:
    """Treat signals as the table says for as long as the context lasts."""
    handlers: dict[signal.Signals, Handler] = dict.fromkeys(SHARED, _wait_on)
    handlers |= dict.fromkeys(FORWARDED, child.forward)
    before = {number: signal.getsignal(number) for number in handlers}
    changed = [number for number in handlers if before[number] is not signal.SIG_IGN]
    for number in changed:
        signal.signal(number, handlers[number])
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])


def die_of(number: int) -> None:
    """End this process by the signal that ended the program, without a second core dump.

    Returns if the signal does not kill, as for the first process of a container.
    """
    _forbid_core_dump()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)


def _forbid_core_dump() -> None:
    # RLIMIT_CORE is not enough: the kernel ignores it where dumps go to a program.
    import ctypes

    pr_set_dumpable = 4  # <linux/prctl.h>
    ctypes.CDLL(None).prctl(pr_set_dumpable, 0, 0, 0, 0)


def _wait_on(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the program decides what the signal means."""
