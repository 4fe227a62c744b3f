"""Running programs under a policy, as the tests of scheduling do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pythons import Python
from suite import PROGRAMS

from ungil import _native

OBEYING = PROGRAMS / "obeying.py"
POLICIES = ("interactive", "fair", "batch", "priority")
# As they travel in shared memory.
NUMBERS = {name: number for number, name in enumerate(("stock", *POLICIES))}
# In milliseconds, almost three hours: who waited for the end of one would never be seen to.
ENDLESS_QUANTUM = 10_000_000.0


def environment(policy: str, quantum_ms: float | None = None) -> dict[str, str]:
    """The environment in which a Python is scheduled by `policy`."""
    changed = {"LD_PRELOAD": _native.preload_value(None), "UNGIL_POLICY": policy}
    if quantum_ms is not None:
        changed["UNGIL_QUANTUM"] = str(quantum_ms)
    return os.environ | changed


def page_of(pid: int) -> Path:
    """The page through which the process `pid` can be told its policy."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return Path(f"/dev/shm/ungil-policy-{os.geteuid()}-{namespace}-{pid}")


@contextmanager
def running(
    python: Python, *arguments: str | Path, policy: str, quantum_ms: float | None = None
) -> Generator[subprocess.Popen[str]]:
    """Start `python ARGUMENTS` under `policy`; in the end nothing is left of it."""
    with subprocess.Popen(
        # From 3.12 on fork warns where there are other threads.
        [python.path, "-Wignore", *map(str, arguments)],
        env=environment(policy, quantum_ms),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            page_of(process.pid).unlink(missing_ok=True)


def run(
    python: Python, *arguments: str | Path, policy: str, quantum_ms: float | None = None
) -> str:
    """What `python ARGUMENTS` prints under `policy`, if it ends well and leaves no page."""
    with running(python, *arguments, policy=policy, quantum_ms=quantum_ms) as process:
        stdout, stderr = process.communicate()
        assert (process.returncode, stderr) == (0, "")
        assert not page_of(process.pid).exists()
        return stdout


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line that the program prints."""
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


def read_rest(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How the program ends, and what it prints until then.

    `communicate()` would leave out what came together with a line that was read.
    """
    assert process.stdout
    assert process.stderr
    stdout, stderr = process.stdout.read(), process.stderr.read()
    return process.wait(), stdout, stderr


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
