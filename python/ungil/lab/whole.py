"""Programs that fan out, as whole processes: from before their start to after their end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ungil.environment import GORNIR
from ungil.lab.experiment import CellFailed, Measured, Missing
from ungil.lab.workload import FOLDER, running

GO = FOLDER / "go"
# Against programs that hang: beyond what the work itself takes.
PATIENCE_S = 120.0


def used(
    words: Sequence[object],
    items: int,
    *,
    extra: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> Measured:
    """What the process of a command took that did something for so many items.

    Wall, user and system time in seconds, peak memory in bytes. `extra` are variables for it.
    CellFailed if it ends badly, or if not all items came back.
    """
    agent = [sys.executable, "-I", "-S", FOLDER / "fanout_used.py", *words]
    with running(agent, extra=extra, patience_s=patience_s) as program:
        measured: dict[str, Any] = program.result()
    said: list[str] = measured.pop("said")
    # The first word is how many items came back.
    if not said or said[-1].split()[0] != str(items):
        raise CellFailed(f"{items} items were to come back; it said {said[-1:]}")
    return measured


@cache
def _built() -> TemporaryDirectory[str]:
    """Where what is built goes; it is gone when ungil ends."""
    return TemporaryDirectory(prefix="ungil-lab-go-")


@cache
def goroutines() -> Path:
    """The program of plain goroutines, built now; Missing without Go, CellFailed."""
    return build("goroutines", Path(_built().name))


def build(name: str, folder: Path) -> Path:
    """Build one of our programs in Go into `folder`; Missing without Go, CellFailed."""
    if shutil.which("go") is None:
        raise Missing("Go is not installed: apt install golang, or https://go.dev/dl")
    command = ["go", "build", "-o", str(folder / name), f"./{name}"]
    done = subprocess.run(command, cwd=GO, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise CellFailed(f"go build ends with: {said[-1]}")
    return folder / name


def gornir() -> Path:
    """The program with gornir that UNGIL_GORNIR names; Missing without."""
    named = os.environ.get(GORNIR)
    if not named:
        raise Missing(
            f"gornir's module cannot be had from the Go proxy: build {GO / 'gornir'} in a copy of"
            f" its repository and name the program in {GORNIR}"
        )
    if not os.access(named, os.X_OK):
        raise Missing(f"{GORNIR} names no program: {named}")
    return Path(named)
