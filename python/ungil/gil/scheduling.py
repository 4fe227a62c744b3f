"""Who gets the GIL of this very program next.

A program that was started by `ungil run`, or has called `ungil.gil.install()`, can change the
policy of its process and the level of its threads at any time.
"""

import threading
from dataclasses import dataclass
from types import TracebackType

from ungil import _native
from ungil.errors import NotInstalled


@dataclass(frozen=True, slots=True)
class Policy:
    """How the GIL is scheduled."""

    name: str
    """`stock` is CPython's own way; see docs/scheduling.md for the others"""
    quantum_ms: float | None
    """how long a thread runs before an equal one is let in; None under `stock`, where
    `sys.getswitchinterval()` says it"""


def policy(name: str | None = None, *, quantum_ms: float | None = None) -> Policy:
    """The policy of this process, which is changed first if one is named.

    The change is for all threads, at once and until the next one; threads that wait for the GIL
    begin to wait anew. Without `quantum_ms` a policy has a quantum of its own.
    Forked children go on with it. Raises ValueError for an unknown name or a quantum without
    sense, `NotInstalled` where the hook is not in the process.
    """
    if name is None and quantum_ms is not None:
        name = policy().name
    if name is not None:
        _native.gil_set_policy(name, quantum_ms)
    in_force = _native.gil_policy()
    if in_force is None:
        raise _not_installed()
    return Policy(*in_force)


class Priority:
    """A level that a thread was given. A `with` block restores the one before at its end."""

    __slots__ = ("_thread", "before", "level")

    def __init__(self, level: str, before: str) -> None:
        """Made by `priority()`."""
        self.level = level
        self.before = before
        self._thread = threading.get_ident()

    def __enter__(self) -> "Priority":
        """The thread has its level already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the thread the level that it had before, also if the block raises."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("a thread's level can be restored by that thread only")
        _native.gil_set_level(self.before)

    def __repr__(self) -> str:
        """What was changed."""
        return f"<Priority {self.level!r}, before {self.before!r}>"


def priority(level: str) -> Priority:
    """Give the calling thread the level "low", "normal" or "high", at once.

    It stays until it is changed, or until the end of a `with` block. Around an `await` it is that
    of all tasks which the event loop runs in this thread meanwhile.
    Under `interactive`, `fair` and `batch` a level is worth four times the share of the one
    below; under `priority` a higher level goes first; under `stock` it means nothing.
    Raises ValueError for an unknown level, `NotInstalled` where the hook is not in the process.
    """
    before = _native.gil_set_level(level)
    if before is None:
        raise _not_installed()
    return Priority(level, before)


def level() -> str:
    """The level of the calling thread; "normal" is what every thread begins with.

    Raises `NotInstalled` where the hook is not in the process.
    """
    found = _native.gil_level()
    if found is None:
        raise _not_installed()
    return found


def _not_installed() -> NotInstalled:
    return NotInstalled(
        "the GIL of this process cannot be scheduled, because the hook is not in it: "
        "start it by `ungil run`, or call ungil.gil.install() first"
    )
