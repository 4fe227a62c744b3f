"""Programs that run already, for whoever looks at them: `programs/looked_at.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from suite import PROGRAMS

from ungil import _native

LOOKED_AT = PROGRAMS / "looked_at.py"

Start = Callable[..., subprocess.Popen[str]]


def running(start: Start, kind: str, python: str = sys.executable, *ungil: str) -> int:
    """Start the program, maybe by words of ungil's; its process id, once it is at it."""
    words = [python, str(LOOKED_AT), kind]
    if ungil:
        process = start(*ungil, *words, stdin=subprocess.PIPE)
    else:
        process = start(args=words, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process.pid


def is_left(pid: int) -> bool:
    """Whether nobody records process `pid` and nothing of a recording is mapped in it."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    tables = [line for line in maps.splitlines() if "/ungil-session-" in line]
    return _native.look_at_recorded(pid) is None and not tables
