"""What to say where there is no /proc, as in some sandboxes and `chroot`s."""

from __future__ import annotations

from pathlib import Path

ADVICE = "mount it: mount -t proc proc /proc"
ABSENT = f"/proc is not mounted here; {ADVICE}"


def is_mounted() -> bool:
    """Whether /proc is there and shows processes."""
    return Path("/proc/self/stat").exists()
