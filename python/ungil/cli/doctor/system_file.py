"""Files of /proc and /sys, which may not be there, or not for us."""

from __future__ import annotations

from pathlib import Path


def text_of(path: str | Path) -> str:
    """What is in the file; nothing if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
