"""One worker process of a pool, as its pool sees it."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Generator
from typing import Any, NamedTuple

from ungil import formatting
from ungil.share._pool import calls
from ungil.share._pool.line import Desk


class Worker(NamedTuple):
    """A worker process, as its pool sees it."""

    number: int
    process: Any
    desk: Desk


@contextlib.contextmanager
def undisturbed() -> Generator[None]:
    """Start workers in such a block."""
    # Until it says what is to be done about it, Ctrl-C is not for a worker.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with warnings.catch_warnings():
            # Of forks beside threads: what the child runs takes no lock of these.
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def own_failure(error: BaseException) -> str:
    """Say what has ended one of the threads of a pool."""
    return f"the pool's own thread failed: {type(error).__name__}: {error}"


def end_of(status: int | None) -> str:
    """How a worker ended: None if SIGCHLD is ignored, or somebody else has waited for it."""
    return "ended with an unknown status" if status is None else formatting.end_of(status)


def lives(process: Any) -> bool:
    """Whether a worker lives, also if nobody knows how it has ended."""
    if not process.is_alive():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def answer(worker: Worker, item: calls.Item) -> None:
    """Tell a task in a worker what became of a task that it has submitted."""
    inbox = worker.desk.inbox
    try:
        try:
            inbox.append(item)
        except (TypeError, ValueError):
            # An object of another heap is no value of this one: its handle is.
            inbox.append(_pickled(item))
    except MemoryError:
        # The task would wait for ever.
        worker.process.kill()
    else:
        worker.desk.mail.release()


def _pickled(item: Any) -> calls.Item:
    number, kind, value = item
    try:
        return calls.pickled_result(number, kind, value)
    except Exception as error:
        return calls.pickled_result(number, calls.ERROR, error)
