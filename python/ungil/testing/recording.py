"""The recording of a test run by its own process, and what was judged in each stretch of it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from ungil._native import Asker
from ungil.errors import HookError
from ungil.limits import Judged
from ungil.recorder import new_recorder
from ungil.testing.garbage import Collections

TOLD_FROM_MS = 1.0
"""From here on holds and waits are told one by one."""


class Span:
    """A stretch of the run; `judged` is what ended in it, and is whole when it is over."""

    def __init__(self) -> None:
        self.judged = Judged([], [])


class Recording:
    """Records this process until `stop()`.

    Inside of `span()` a thread of ungil's own asks for the GIL all the time, so that holders which
    do not let go are noticed although no thread of the test waits.
    """

    def __init__(self) -> None:
        """Begin. HookError, in one sentence, if the GIL of this process cannot be recorded."""
        self._pid = os.getpid()
        self._spans: list[Span] = []
        self._collections = Collections()
        # No file: a recording thread that waits for a disk sees nothing meanwhile.
        least_ms = (TOLD_FROM_MS, TOLD_FROM_MS)
        self._recorder = new_recorder(None, follow_children=False, judged_from_ms=least_ms)
        try:
            self._recorder.join()
        except RuntimeError as error:
            raise HookError(str(error)) from error
        self._asker = Asker()
        self._is_over = False
        atexit.register(self.stop)

    @contextmanager
    def span(self) -> Generator[Span]:
        """What is judged inside of the block; blocks may lie in each other.

        In the child of a fork nothing is.
        """
        span = Span()
        if os.getpid() != self._pid:
            yield span
            return
        self._settle()
        self._spans.append(span)
        self._collections.notice(True)
        self._asker.ask(True)
        try:
            yield span
        finally:
            if os.getpid() == self._pid:
                self._settle()
                self._spans.remove(span)
                if not self._spans:
                    self._asker.ask(False)
                    self._collections.notice(False)

    def _settle(self) -> None:
        """Give what has ended until now to the spans that go on."""
        judged = Judged.read(self._recorder.judged(), without=self._asker.tid)
        judged = self._collections.without(judged)
        for span in self._spans:
            span.judged += judged

    def stop(self) -> None:
        """End, and leave nothing behind; a second time nothing happens."""
        atexit.unregister(self.stop)
        if os.getpid() != self._pid or self._is_over:
            return
        self._is_over = True
        self._asker.stop()
        with suppress(RuntimeError):
            self._recorder.stop()
