"""Counting the system calls of a workload with strace."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ungil.lab.conditions import STOCK, Conditions
from ungil.lab.experiment import CellFailed, Measured, Missing
from ungil.lab.workload import running

# Columns of strace -c: % time, seconds, usecs/call, calls, errors (may be blank), syscall.
_LINE = re.compile(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)")


def count(
    words: Sequence[object],
    conditions: Conditions = STOCK,
    *,
    extra: Mapping[str, str] | None = None,
) -> tuple[Measured, Measured]:
    """Run a command under `strace -f -c`: what it says, and its calls by name.

    `extra` are variables besides those of `conditions`.
    Missing if there is no strace, or it is not allowed to trace.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise Missing("strace is not installed: apt install strace, or dnf install strace")
    with tempfile.TemporaryDirectory(prefix="ungil-lab-") as folder:
        counts = Path(folder) / "counts"
        command = [strace, "-f", "-c", "-o", counts, *words]
        with running(command, conditions, extra=extra) as program:
            try:
                said = program.result()
            except CellFailed as error:
                if "ptrace" in str(error).lower():
                    raise Missing(f"strace may not trace here: {error}") from error
                raise
        calls = parse(counts.read_text(encoding="utf-8", errors="replace"))
    if not calls:
        raise CellFailed("strace has counted nothing")
    return said, calls


def parse(table: str) -> dict[str, int]:
    """The calls by name in a table that `strace -c` wrote; most first, without the total."""
    found = {match[2]: int(match[1]) for match in map(_LINE.match, table.splitlines()) if match}
    found.pop("total", None)
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
