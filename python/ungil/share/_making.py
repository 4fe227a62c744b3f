"""Who makes a heap that any number of processes want: one of them, while the others wait.

Whoever makes it has a lock of the kernel's on a file beside the heap's (fcntl(2), `F_SETLKW`). It
lets go of that when it ends, however it ends, and no child inherits it. Within a process such a
lock keeps nobody out, so that its threads wait for each other in the ordinary way.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ungil.share import _names

_locks: dict[str, threading.RLock] = {}
# The names of heaps that a thread of this process is making.
_making: set[str] = set()


@contextmanager
def alone(name: str) -> Generator[None]:
    """Let one thread of one process at a time make the heap of this name.

    Raises RuntimeError in the thread that makes it already, PermissionError if somebody else has
    put a file in the way.
    """
    with _locks.setdefault(name, threading.RLock()):
        if name in _making:
            raise RuntimeError(
                f"this thread is still making the heap {name!r}: init gets the heap as its "
                "argument and must not open it by name"
            )
        _making.add(name)
        try:
            with _locked(name):
                yield
        finally:
            _making.discard(name)


@contextmanager
def _locked(name: str) -> Generator[None]:
    path = _names.lock_path_of(name)
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.ELOOP) and os.path.lexists(path):
                raise _in_the_way(path) from None
            raise _names.explained(error) from None
        try:
            if os.fstat(file).st_uid != os.geteuid():
                raise _in_the_way(path)
            fcntl.lockf(file, fcntl.LOCK_EX)
            # Who had it before has removed the file, and another may have made a new one.
            if _is_at(file, path):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return
        finally:
            os.close(file)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def _in_the_way(path: Path) -> PermissionError:
    return PermissionError(errno.EACCES, f"{path} belongs to another user; remove it")


def _forget() -> None:
    """In a forked child: whatever its parent is making, it is not."""
    _locks.clear()
    _making.clear()


os.register_at_fork(after_in_child=_forget)
