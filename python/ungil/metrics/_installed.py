"""Counts this process, and the children that it forks: a server may fork its workers later."""

import os
from collections.abc import Callable
from contextlib import suppress

from ungil import gil
from ungil.errors import HookError

_after_fork: list[Callable[[], None]] = []
_is_registered = False


def install() -> None:
    """Install `ungil.gil` here and in every child. Raises HookError where that is impossible."""
    global _is_registered
    gil.install()
    if not _is_registered:
        _is_registered = True
        os.register_at_fork(after_in_child=_install_in_child)


def call_in_children(function: Callable[[], None]) -> None:
    """Have `function` called in each child after fork, once the child is counted."""
    _after_fork.append(function)


def _install_in_child() -> None:
    # A child that cannot be counted, for want of memory, is not worth an exception in `os.fork`.
    with suppress(HookError):
        gil.install()
        for function in _after_fork:
            function()
