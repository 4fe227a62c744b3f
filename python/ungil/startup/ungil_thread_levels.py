"""Levels for threads by their names, inside a program that knows nothing of ungil.

UNGIL_PRIORITY holds one rule a line, `PATTERN=LEVEL`. The first pattern that a thread's name
matches (`fnmatch`, case matters) gives its level: when the thread starts, and when it renames
itself; with a new name that no pattern matches it is "normal" again. A thread can change no level
but its own, so a name that another thread gives to a running one means nothing.

Two seams of `threading`, the same in every CPython from 3.7 on, are enough:

* `Thread._set_ident`, which every thread calls once, in itself: those of `Thread.start`, the
  main thread, and foreign ones, when `threading` first hears of them. It has returned before
  `run` begins, so nothing of this file is in any traceback or stack of the program.
* `Thread.name`, a property: its setter does what it did, and then looks at the name.

It runs on Python 3.7 and later without ungil: only the standard library may be imported.
"""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False  # Importing `typing` would double what all this costs.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LEVELS = {"low": 0, "normal": 1, "high": 2}
"""The numbers by which the hook knows them."""


def obey(text: str, library: str | None = None) -> None:
    """Give the calling thread, and all threads from now on, the levels that the rules say.

    `library` is the hook's file; None means the one that was preloaded, and nothing is done in a
    process without one. Rules that cannot be read are one sentence on stderr; none is obeyed.
    """
    set_level = _hook_function(library)
    if set_level is None:
        return
    try:
        rules = parse(text)
    except ValueError as error:
        sys.stderr.write(f"ungil: UNGIL_PRIORITY is ignored: {error}\n")
        return
    _watch(set_level, rules)


def parse(text: str) -> list[tuple[str, int]]:
    """The rules in `text` as patterns and numbers of levels. ValueError says what is wrong."""
    rules: list[tuple[str, int]] = []
    for line in filter(str.strip, text.splitlines()):
        pattern, _, level = line.rpartition("=")
        if not pattern or level not in LEVELS:
            raise ValueError(f"{line!r} is not PATTERN=low, PATTERN=normal or PATTERN=high")
        rules.append((pattern, LEVELS[level]))
    return rules


def _hook_function(library: str | None) -> Callable[[int], object] | None:
    """The hook's function that sets the calling thread's level."""
    try:
        from ctypes import PyDLL

        # PyDLL keeps the GIL: letting go of it would cost each new thread a wait.
        return PyDLL(library).ungil_set_level_v1
    except (ImportError, AttributeError, OSError, MemoryError):
        # No ctypes, no hook, or a system that forbids what ctypes needs.
        return None


def _watch(set_level: Callable[[int], object], rules: list[tuple[str, int]]) -> None:
    import threading
    from fnmatch import fnmatchcase

    # Two of its attributes are about to be replaced, one of them private.
    Thread: Any = threading.Thread
    set_ident, name = Thread._set_ident, Thread.name

    def level_of(thread_name: str) -> int | None:
        return next((level for pattern, level in rules if fnmatchcase(thread_name, pattern)), None)

    def is_calling(thread: Any) -> bool:
        # gevent makes threads greenlets of one thread, which has one level. They have other
        # identifiers than this `get_ident`, which is of before the patching, gives.
        return thread.ident == get_ident()

    def set_ident_and_level(self: Any) -> None:
        set_ident(self)
        # A subclass may have any `name`, which must not keep its thread from starting.
        try:
            level = level_of(self.name)
        except Exception:
            return
        if level is not None and is_calling(self):
            set_level(level)

    def set_name_and_level(self: Any, new: Any) -> None:
        before = getattr(self, "_name", "")
        name.fset(self, new)
        level = level_of(self._name)
        if level is None and level_of(before) is not None:
            level = LEVELS["normal"]
        if level is not None and is_calling(self):
            set_level(level)

    Thread._set_ident = set_ident_and_level
    Thread.name = property(name.fget, set_name_and_level, name.fdel, name.__doc__)
    level = level_of(threading.current_thread().name)
    if level is not None:
        set_level(level)
