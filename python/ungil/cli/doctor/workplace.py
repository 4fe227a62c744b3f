"""A folder for what `ungil doctor` tries, also where there is none for temporary files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ungil.errors import Error

SHARED_MEMORY = "/dev/shm"
ADVICE = "set TMPDIR to a writable folder"


@contextmanager
def workplace() -> Generator[Path]:
    """A new folder, removed at the end; Error if there is no place for one."""
    place = temporary_folder() or SHARED_MEMORY
    try:
        folder = tempfile.TemporaryDirectory(prefix="ungil-doctor-", dir=place)
    except OSError as error:
        what = f"ungil cannot try a trace: neither a temporary folder nor {SHARED_MEMORY} is"
        raise Error(f"{what} writable; {ADVICE}") from error
    with folder as path:
        yield Path(path)


def temporary_folder() -> str | None:
    """Where Python has its temporary files; None if it finds no place."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return None


def asked_for() -> str | None:
    """Where the environment wants temporary files to be."""
    return os.environ.get("TMPDIR") or os.environ.get("TEMP") or os.environ.get("TMP")
