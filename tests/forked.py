"""Work in forked children of a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager


def in_child(work: Callable[[], object]) -> int:
    """Runs `work` in a forked child; its process id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """Waits for the end of a child; its exit code, or the negative number of a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def child(work: Callable[[], object]) -> Generator[None]:
    """Runs `work` in a forked child beside the body, and expects it to succeed."""
    number = in_child(work)
    try:
        yield
    finally:
        assert ended(number) == 0
