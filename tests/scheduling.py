"""Running programs under a policy, as the tests of scheduling do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from pythons import Python

from ungil import _native

PROGRAMS = Path(__file__).parent / "programs"
POLICIES = ("interactive", "fair", "batch", "priority")
# As they travel in shared memory.
NUMBERS = {name: number for number, name in enumerate(("stock", *POLICIES))}
# In milliseconds, almost three hours: whoever had to wait for the end of one would never be seen to.
ENDLESS_QUANTUM = 10_000_000.0


def environment(policy: str, quantum_ms: float | None = None) -> dict[str, str]:
    """The environment in which a Python is scheduled by `policy`."""
    changed = {"LD_PRELOAD": _native.hook_path(), "UNGIL_POLICY": policy}
    if quantum_ms is not None:
        changed["UNGIL_QUANTUM"] = str(quantum_ms)
    return os.environ | changed


def start(
    python: Python,
    *arguments: str | Path,
    policy: str,
    quantum_ms: float | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """Start `python ARGUMENTS` under `policy`, with its output in pipes."""
    return subprocess.Popen(
        [python.path, *map(str, arguments)],
        env=environment(policy, quantum_ms),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(
    python: Python, *arguments: str | Path, policy: str, quantum_ms: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` under `policy` to its end."""
    with start(python, *arguments, policy=policy, quantum_ms=quantum_ms) as process:
        try:
            stdout, stderr = process.communicate()
        except BaseException:
            # pytest-timeout, or Ctrl-C: nothing is left behind.
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
