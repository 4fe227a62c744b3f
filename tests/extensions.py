"""Extension modules of tests, built for the Python that is to load them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from suite import PROGRAMS


def build_extension(folder: Path, python: str, name: str) -> None:
    """Build `programs/NAME.c` into `folder`, for that interpreter."""
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    asked = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    options = ["-O2", "-shared", "-fPIC", "-I", asked.stdout.strip(), "-o", folder / f"{name}.so"]
    subprocess.run(["cc", *options, PROGRAMS / f"{name}.c"], check=True)
