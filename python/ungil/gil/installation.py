"""The hook in this very program: what puts it there, and what it takes to use it."""

import sys

from ungil import _native
from ungil.errors import HookError


def install() -> None:
    """Enable all of `ungil.gil`: from now on, this process is counted, and can be scheduled.

    Does nothing if it is installed already. Each acquire and release of the GIL takes some tens of
    nanoseconds longer. Nothing else changes: the policy is `stock`, unless UNGIL_POLICY and
    UNGIL_QUANTUM name another one.

    In a program under `ungil trace` that started without the hook, this joins the recording, and so
    do forked children. Otherwise neither forked children nor programs started from here are
    counted. `ungil policy` reaches the process from then on.

    Raises `HookError` where that is impossible: in free-threaded Python, PyPy, unknown builds.
    """
    try:
        _native.gil_install()
    except RuntimeError as error:
        raise HookError(f"the GIL of this process cannot be recorded: {error}") from None


def is_off() -> bool:
    """Whether this is a free-threaded Python whose GIL is off."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)  # Since 3.13.
    return is_enabled is not None and not is_enabled()


def installed() -> bool:
    """Whether all of `ungil.gil` works here: the process is counted, and can be scheduled.

    That is so after `install()`. A program that `ungil trace` or `ungil run` started may have one
    half without it.
    """
    return _native.gil_installed() and _native.gil_policy() is not None
