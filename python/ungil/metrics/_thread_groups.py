"""Threads in groups by their names: which names belong together, and who tells the hook.

The hook sums threads by the number of their group, the ended ones too. A thread is put into its
group when it starts, and looked at again whenever the sums are read, because it may have another
name by then.
"""

import threading
from _thread import get_ident
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from ungil import _native
from ungil.errors import UsageError
from ungil.metrics._installed import call_in_children, install

OTHER = "other"
DEFAULT = {"main": "MainThread"}
# The hook tells nine groups apart, of which the first is that of the others.
MOST = 8
_OTHER = 1

_patterns: dict[str, str] = {}
_is_watching = False


def group_threads(threads: Mapping[str, str] | None) -> list[str]:
    """Group the threads of this process from now on; the names of the groups, by number.

    Raises UsageError for too many groups, for a group named "other", and for others than those
    that an earlier call asked for: the process has one set of groups.
    """
    wanted = dict(DEFAULT if threads is None else threads)
    if len(wanted) > MOST:
        raise UsageError(f"threads has {len(wanted)} groups, but at most {MOST} are possible")
    if OTHER in wanted:
        raise UsageError(
            f"threads names a group {OTHER!r}, which is the group of all other threads"
        )
    if _patterns and list(wanted.items()) != list(_patterns.items()):
        raise UsageError(
            f"the threads of this process are grouped as {_patterns} already: "
            f"give the same groups instead of {wanted}"
        )
    _patterns.update(wanted)
    install()
    _watch_starts()
    regroup()
    return [OTHER, *_patterns]


def regroup() -> None:
    """Put every running thread into the group that its name belongs to."""
    threads = [thread for thread in threading.enumerate() if thread.ident is not None]
    groups = {thread.ident or 0: _group(thread.name) for thread in threads}
    _native.gil_regroup(groups, _OTHER)


def _group(name: str) -> int:
    """The number of the group that a thread of that name belongs to."""
    matching = (fnmatchcase(name, pattern) for pattern in _patterns.values())
    numbers = (number for number, matches in enumerate(matching, _OTHER + 1) if matches)
    return next(numbers, _OTHER)


def _watch_starts() -> None:
    """Put each thread into its group when it starts: a short one may end before anyone looks.

    `Thread._set_ident` is what every thread calls once, in itself, before its `run`; the same seam
    that UNGIL_PRIORITY uses, and it works beside that.
    """
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    thread_class: Any = threading.Thread
    set_ident = thread_class._set_ident

    def set_ident_and_group(self: Any) -> None:
        set_ident(self)
        # No metric is worth a thread that does not start: a subclass may have any `name`, and a
        # child that was just forked is not counted yet.
        with suppress(Exception):
            if self.ident == get_ident():
                _native.gil_set_group(_group(self.name))

    thread_class._set_ident = set_ident_and_group
    call_in_children(regroup)
