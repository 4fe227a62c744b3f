"""Programs on a pseudo-terminal, and what a person sees on it."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

# A login: takes over the terminal on descriptor 0, runs a program in the foreground, and says when
# it has ended. It stays until the terminal is hung up, as the kernel drops what nobody has read yet
# when the process ends that a terminal belongs to.
_LOGIN = """\
import fcntl, os, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
    signal.signal(number, lambda *_: None)
status = subprocess.Popen(sys.argv[1:]).wait()
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, os.getpgrp())
os.write(0, b"\\0")
try:
    while os.read(0, 100):
        pass
except OSError:
    pass
os._exit(status if status >= 0 else 128 - status)
"""
_ENDED = "\0"

Start = Callable[..., subprocess.Popen[str]]


class Terminal:
    """A pseudo-terminal of so many columns with `command` in the foreground."""

    def __init__(
        self, command: list[str], start: Start, *, columns: int = 100, **options: Any
    ) -> None:
        self._master, slave = os.openpty()
        self.resize(columns)
        # Without NOFLSH, Ctrl-C drops what was not read yet, and only after it has sent the signal:
        # what the program answers at once may be lost.
        attributes = termios.tcgetattr(slave)
        attributes[3] |= termios.NOFLSH
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        words = [sys.executable, "-c", _LOGIN, *command]
        self.login = start(args=words, **(streams | options))
        os.close(slave)
        self.seen = ""
        # A character may come in two pieces.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def resize(self, columns: int) -> None:
        """Give it another width."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def read_until(self, text: str, times: int = 1) -> str:
        """Read until `text` has appeared so often; all that was seen."""
        while self.seen.count(text) < times:
            assert _ENDED not in self.seen, self.seen
            try:
                self.seen += self._decoder.decode(os.read(self._master, 4096))
            except OSError as error:
                raise AssertionError(self.seen) from error
        return self.seen

    def end(self) -> int:
        """Read until the program has ended, and hang up; its exit status, of a shell's kind."""
        self.seen = self.read_until(_ENDED).replace(_ENDED, "")
        os.close(self._master)
        return self.login.wait()

    def lines(self) -> list[str]:
        """What is left on the screen: lines that were erased are gone, and so are colours."""
        lines = [""]
        row = 0
        for part in re.split(r"(\x1b\[[\d;?]*[A-Za-z]|\r|\n)", self.seen):
            if part == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif part == "\x1b[2K":
                lines[row] = ""
            elif part == "\x1b[1A":
                row -= 1
            elif part and part != "\r" and not part.startswith("\x1b"):
                lines[row] += part
        return [line.rstrip() for line in lines]
