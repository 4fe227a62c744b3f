"""Where the stub is, which of them a loader takes, and copies of them elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

from ungil import _native

HOOK = Path(_native.hook_path())
# What LD_PRELOAD names, for the loader to complete.
PRELOADED = _native.preload_value(None)
# The one for a loader that completes nothing.
STUB = HOOK.parent / "preload" / "libungil_preload.so"


def mapped_stub(maps: str) -> str | None:
    """The stub among the files of a process, as `/proc/PID/maps` names them."""
    return next((path for path in maps.split() if path.endswith(f"/{STUB.name}")), None)


def copied(folder: Path, hook: bytes | None = None) -> str:
    """Copies all stubs, and beside them the hook or what shall be there in its stead.

    Returns what LD_PRELOAD has to name.
    """
    shutil.copytree(STUB.parent, folder / STUB.parent.name)
    (folder / HOOK.name).write_bytes(HOOK.read_bytes() if hook is None else hook)
    return PRELOADED.replace(str(HOOK.parent), str(folder))
