"""The Python interpreters of this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NAME = re.compile(r"(python|pypy)(\d+(\.\d+)?t?)?")


def find_interpreters() -> list[Path]:
    """Each interpreter of PATH, /usr/bin, pyenv and uv once, the current one first."""
    found: dict[Path, Path] = {Path(sys.executable).resolve(): Path(sys.executable)}
    for folder in _folders():
        try:
            candidates = sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
        except OSError:
            continue
        for path in candidates:
            if path.is_file() and os.access(path, os.X_OK) and not _is_script(path):
                found.setdefault(path.resolve(), path)
    return list(found.values())


def _folders() -> Iterator[Path]:
    """Where interpreters are usually installed."""
    for folder in os.get_exec_path():
        if folder:
            yield Path(folder)
    yield Path("/usr/bin")
    yield Path("/usr/local/bin")
    home = Path("~").expanduser()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv/python")
    for versions in (pyenv, uv):
        # They may belong to somebody else.
        with suppress(OSError):
            yield from sorted(versions.glob("*/bin"))


def _is_script(path: Path) -> bool:
    """Whether `path` is a wrapper, such as a shim of pyenv, around an interpreter."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True
