"""Starts forked workers one right after the other.

After a fork each page that this process writes to is copied first, once more after each fork. So
what can be done before the first fork, or after the last one, is not done between two.
"""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial
from multiprocessing import popen_fork, util
from typing import Any, NamedTuple, NoReturn

# Forked one right after the other: until the last one is, each has four descriptors here.
_BATCH = 8
# What a child has to do first changes with versions (multiprocessing/popen_fork.py, `_launch`).
_IS_KNOWN = sys.version_info < (3, 16)
_private: Any = util


def _close(*ends: int) -> None:
    for end in ends:
        os.close(end)


class _Pipes(NamedTuple):
    """Two pipes that nothing is written to: who dies closes his ends, and the other one sees it."""

    sentinel: int
    """Where the parent sees that the child is dead,"""
    child: int
    """as the child has the other end."""
    parent: int
    """Where the child sees that the parent is dead,"""
    alive: int
    """as the parent has the other end."""

    @classmethod
    def new(cls) -> _Pipes:
        sentinel, child = os.pipe()
        try:
            return cls(sentinel, child, *os.pipe())
        except OSError:
            _close(sentinel, child)
            raise


class _Popen(popen_fork.Popen):
    """A child that has been forked."""

    def __init__(self, pid: int, pipes: _Pipes) -> None:
        # In place of what would fork it.
        self.pid = pid
        self.returncode = None
        self.sentinel = pipes.sentinel
        self.finalizer = util.Finalize(self, _close, (pipes.sentinel, pipes.alive))


def start_forked(processes: list[Any]) -> None:
    """Start processes by fork, some of them even if it raises: those then have a `pid`.

    Raises OSError if one cannot be started.
    """
    if not _IS_KNOWN:
        for process in processes:
            process.start()
        return
    # The first as ever, which raises what is wrong with starting any.
    processes[0].start()
    for first in range(1, len(processes), _BATCH):
        _start(processes[first : first + _BATCH])


def _start(processes: list[Any]) -> None:
    _private._flush_std_streams()
    pipes: list[_Pipes] = []
    pids: list[int] = []
    try:
        for _ in processes:
            pipes.append(_Pipes.new())
        _keep_tracker(True)
        for number in range(len(processes)):
            pid = os.fork()
            if pid == 0:
                _run(processes[number], pipes, number)
            pids.append(pid)
    finally:
        _keep_tracker(False)
        for it in pipes[len(pids) :]:
            _close(*it)
        for process, pid, it in zip(processes, pids, pipes, strict=False):
            _close(it.child, it.parent)
            process._Popen = partial(_as_forked, _Popen(pid, it))
            process.start()


def _as_forked(popen: _Popen, _process: Any) -> _Popen:
    return popen


def _run(process: Any, pipes: list[_Pipes], number: int) -> NoReturn:
    """In the child, until its end."""
    status = 1
    try:
        _keep_tracker(False)
        own = pipes[number]
        kept = (own.child, own.parent)
        _close(*(end for it in pipes for end in it if end not in kept))
        if sys.version_info >= (3, 13):
            # It runs what the target registers, and nothing of the parent's.
            atexit._clear()
            atexit.register(_private._exit_function)
        status = process._bootstrap(parent_sentinel=own.parent)
    finally:
        if sys.version_info >= (3, 13):
            atexit._run_exitfuncs()
        os._exit(status)


def _keep_tracker(is_kept: bool) -> None:
    """Whether a child goes on with the resource tracker of its parent, as of 3.14 (gh-146313)."""
    tracker = sys.modules.get("multiprocessing.resource_tracker")
    if (intent := getattr(tracker, "_fork_intent", None)) is not None:
        intent.preserve_fd = is_kept
