"""Where the heaps with a name are: files in /dev/shm, each user's names being their own.

The heap `cache` of the user with the number 1000 is /dev/shm/ungil-heap-1000-cache.
"""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/dev/shm")
# What says that no file can be made in a folder, whatever the file.
_UNUSABLE = {errno.ENOENT, errno.ENOTDIR, errno.EROFS, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def path_of(name: str) -> Path:
    """Return the path of this user's heap of that name; ValueError if it can be no name."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"the name of a heap is a str, not {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a heap: a name has 1 to 200 letters (a to z), digits, "
            "'.', '_' and '-'"
        )
    return FOLDER / f"{_prefix()}{name}"


def lock_path_of(name: str) -> Path:
    """Return the path of the file that is locked while the heap of that name is made."""
    return FOLDER / f"ungil-making-{os.geteuid()}-{name}"


def explained(error: OSError) -> OSError:
    """Return what to raise for the failure to make a file in the folder of heaps with a name."""
    if error.errno not in _UNUSABLE:
        return error
    return OSError(
        error.errno,
        f"heaps with a name are files in {FOLDER}, and none can be made there"
        f" ({os.strerror(error.errno)}): mount a tmpfs there (mount -t tmpfs tmpfs {FOLDER}), or"
        " make a heap without a name",
    )


def name_of(path: str) -> str | None:
    """Return the name of the heap of this user with that path, if it has one."""
    file = Path(path)
    if file.parent != FOLDER or not file.name.startswith(_prefix()):
        return None
    return file.name.removeprefix(_prefix())


def names() -> Iterator[str]:
    """The names of this user's heaps, sorted.

    Anybody may put files there that are called otherwise: these are none.
    """
    found = (name_of(str(path)) for path in FOLDER.iterdir())
    yield from sorted(name for name in found if name is not None and _NAME.fullmatch(name))


def _prefix() -> str:
    return f"ungil-heap-{os.geteuid()}-"
