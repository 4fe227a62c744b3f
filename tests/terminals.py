"""Programs on a pseudo-terminal, and what a person sees on it."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

# Takes over the terminal on descriptor 0, as a login does, and becomes another program.
_ON_THE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""

Start = Callable[..., subprocess.Popen[str]]


class Terminal:
    """A pseudo-terminal of so many columns with `command` as its session."""

    def __init__(
        self, command: list[str], start: Start, *, columns: int = 100, **options: Any
    ) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        words = [sys.executable, "-c", _ON_THE_TERMINAL, *command]
        self.process = start(args=words, **(streams | options))
        os.close(slave)
        self.seen = ""

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def read_until(self, text: str | None) -> str:
        """Read until `text` appears, or, for None, until everybody has closed the terminal."""
        while text is None or text not in self.seen:
            try:
                data = os.read(self._master, 4096)
            except OSError:  # EIO: that is how a pseudo-terminal ends
                data = b""
            if not data:
                assert text is None, self.seen
                break
            self.seen += data.decode()
        return self.seen

    def close(self) -> None:
        """Hang up."""
        os.close(self._master)

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
