"""What the targets of the Makefile do, read from what `make` says that it would do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parent.parent


def test_libraries_that_programs_have_mapped_are_replaced_and_not_written_into() -> None:
    """A program whose mapped library is cut off dies of SIGBUS (mmap(2))."""
    make = shutil.which("make")
    assert make is not None
    environment = {name: it for name, it in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        [make, "--dry-run", "--what-if=Cargo.toml", ".venv/developed.stamp"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    (built,) = [it for it, line in enumerate(lines) if "maturin develop" in line]
    (removed,) = [it for it, line in enumerate(lines) if line.startswith("rm ")]
    assert removed < built
    assert {"python/ungil/*.so", "python/ungil/preload"} <= {*lines[removed].split()}
