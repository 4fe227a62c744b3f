"""`ungil fanout`: a function or a command for every host of a file."""

# pyright: basic
# (for pytest a module has no type)

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_fanout.hosts import write_hosts
from suite import PROGRAMS


@pytest.fixture(autouse=True)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where it runs: with three hosts, and the functions that the file of tests names."""
    shutil.copy(PROGRAMS / request.module.TASKS, tmp_path / "tasks.py")
    write_hosts(tmp_path, 3)
    return tmp_path
