"""Processes that run under a policy, and say which."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ungil import _native

OBEYING = Path(__file__).with_name("programs") / "obeying.py"


class Obeying:
    """`tests/programs/obeying.py`, running."""

    def __init__(
        self, start: Callable[..., subprocess.Popen[str]], *arguments: str, **options: Any
    ) -> None:
        self.process = start(*arguments, stdin=subprocess.PIPE, stderr=None, **options)
        self.pid = int(self.line())

    def policy(self) -> tuple[str, float] | None:
        """The policy that it obeys, and its quantum in milliseconds; None without the hook."""
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        answer = self.line()
        if answer == "no hook":
            return None
        number, quantum_ms = answer.split()
        return _native.POLICIES[int(number)], float(quantum_ms)

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")
