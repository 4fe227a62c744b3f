"""A control group with a CPU limit, made for a test, where this machine lets one be made."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

PERIOD_US = 100_000


class Group:
    """A control group that limits CPU time, of version 1 or 2."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_v2 = (folder / "cpu.max").exists()

    def limit(self, share: float) -> None:
        """To that share of one processor."""
        quota_us = int(share * PERIOD_US)
        if self.is_v2:
            (self.folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota_us))

    def unlimit(self) -> None:
        """To all there is."""
        if self.is_v2:
            (self.folder / "cpu.max").write_text(f"max {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_quota_us").write_text("-1")

    def enter(self) -> None:
        """Puts the calling process into it; for `preexec_fn`."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))


@contextmanager
def control_group() -> Generator[Group]:
    """A new group, which is removed again.

    Where none can be made, the test is skipped; in CI it fails.
    """
    folder = next((made for made in map(_made_in, _roots()) if made), None)
    if folder is None:
        assert "CI" not in os.environ, "no control group with a CPU limit can be made here"
        pytest.skip("no control group with a CPU limit can be made here")
    try:
        yield Group(folder)
    finally:
        # Processes that were killed leave it a moment later.
        while (folder / "cgroup.procs").read_text():
            time.sleep(0.001)
        folder.rmdir()


def _roots() -> Generator[Path]:
    """Where hierarchies with the controller `cpu` are mounted."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        place, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        root = Path(place.split(" ")[4])
        delegated = root / "cgroup.subtree_control"
        controllers = options.split(",") if kind == "cgroup" else []
        if kind == "cgroup2" and delegated.exists():
            controllers = delegated.read_text(encoding="ascii").split()
        if "cpu" in controllers:
            yield root


def _made_in(root: Path) -> Path | None:
    folder = root / f"ungil-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        return None
    return folder
