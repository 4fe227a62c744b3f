"""A folder with hosts and functions, and what `ungil fanout` prints about them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., subprocess.CompletedProcess[str]]


def write_hosts(folder: Path, count: int) -> None:
    """sw1, sw2 and so on, in the file `hosts`."""
    (folder / "hosts").write_text("".join(f"sw{n}\n" for n in range(1, count + 1)))


def words_of(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.splitlines()]


def jsons(text: str) -> list[dict[str, Any]]:
    """What each line says, by hosts."""
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda it: it["host"])
