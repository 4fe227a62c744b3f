"""What all tests share: how long they wait, and where the programs are that they run."""

from __future__ import annotations

from pathlib import Path

# For what must happen: a watchdog against hangs, and no performance limit. Far more than anything
# here takes on the slowest machine, and less than the suite's own watchdog (`timeout` in
# pyproject.toml), so that a test that hangs can still say where.
PATIENCE_S = 120

# One small program for each behaviour.
PROGRAMS = Path(__file__).with_name("programs")
