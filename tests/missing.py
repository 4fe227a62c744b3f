"""Running commands where folders such as /proc are missing.

Where it is allowed they are covered by mounts, in a mount namespace, as root or as an ordinary user
(which a user namespace makes root). Everywhere they are hidden by the C library.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tracing import compile_library

# Whoever has the project in a temporary folder has its interpreter there, too.
_PROJECT = Path(__file__).parent.parent
# Something small that nobody can write to, in place of a folder,
_COVER = "mount -t tmpfs -o ro,size=4k none {}"
# and of one that the project is in, which stays where it was.
_COVER_ALL_BUT = (
    "exec 9<{project} && mount -t tmpfs -o size=64k none {folder} && mkdir -p {project}"
    " && mount -c --bind /proc/self/fd/9 {project} && exec 9<&- && mount -o remount,ro {folder}"
)


def _cover(folder: str) -> str:
    """What covers a folder, for a shell."""
    if _PROJECT.is_relative_to(folder):
        return _COVER_ALL_BUT.format(folder=shlex.quote(folder), project=shlex.quote(str(_PROJECT)))
    return _COVER.format(shlex.quote(folder))


@dataclass(frozen=True)
class Mounts:
    """Folders are covered."""

    flags: tuple[str, ...]

    def __str__(self) -> str:
        return "mounts"

    def without(
        self, folders: Sequence[str], words: Sequence[str], _scratch: Path
    ) -> tuple[list[str], dict[str, str]]:
        """A command line that runs `words` without these folders, and variables for it."""
        covers = [_cover(it) for it in folders if Path(it).is_dir()]
        script = " && ".join([*covers, 'exec "$@"'])
        return ["unshare", *self.flags, "sh", "-c", script, "sh", *words], {}


@dataclass(frozen=True)
class Hiding:
    """The C library does not find folders."""

    def __str__(self) -> str:
        return "hiding"

    def without(
        self, folders: Sequence[str], words: Sequence[str], scratch: Path
    ) -> tuple[list[str], dict[str, str]]:
        """As above."""
        library = compile_library(scratch, "hide")
        hidden = {"HIDE": ":".join(folders), "KEEP": str(_PROJECT)}
        return list(words), {**hidden, "LD_PRELOAD": str(library)}


@cache
def ways() -> list[Mounts | Hiding]:
    """What is possible here."""
    choices = [("--mount",), ("--user", "--map-root-user", "--mount")]
    for flags in choices:
        trial, _ = Mounts(flags).without(["/proc"], ["true"], Path())
        try:
            if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
                return [Mounts(flags), Hiding()]
        except FileNotFoundError:
            break
    return [Hiding()]
