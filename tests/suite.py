"""What all tests share: how long they wait, and how they run the programs of `programs/`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

# For what must happen: a watchdog against hangs, and no performance limit. Far more than anything
# here takes on the slowest machine, and less than the suite's own watchdog (`faulthandler_timeout`
# in pyproject.toml), so that a test that hangs can still say where.
PATIENCE_S = 120

# What `make rust-test` builds the crates with: `cargo` with others builds nearly all of them anew.
RUST_FEATURES = ["--features", "ungil-heap/fault,ungil-trace/stacks"]

# One small program for each behaviour.
PROGRAMS = Path(__file__).with_name("programs")


def filtered(outcome: str, *calls: str) -> list[str]:
    """What begins a command whose system calls of these names are `refused` or `killed`."""
    return [sys.executable, str(PROGRAMS / "filtered.py"), outcome, ",".join(calls)]


def run_python(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the Python of the tests to its end, whatever its status is."""
    defaults: dict[str, Any] = {"capture_output": True, "timeout": PATIENCE_S}
    settings = defaults | options
    return subprocess.run([sys.executable, *words], check=False, text=True, **settings)
