"""The last seconds of this very program: watched for stalls, and written when somebody asks."""

from __future__ import annotations

import atexit
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from types import TracebackType
from typing import Literal, Self

from ungil import _native
from ungil.errors import HookError, NotInstalled
from ungil.formatting import native_reason
from ungil.recorder import Flight, new_recorder
from ungil.snapshots import Written, written

LAST_S = 10.0
# The end of the recording ends the pause.
_PAUSE_S = 60.0


@dataclass(frozen=True)
class Stall:
    """A wait or a hold of a thread that took too long."""

    kind: Literal["wait", "hold"]
    """Whether the thread waited for the GIL, or held it."""
    thread: str
    """Its name."""
    tid: int
    """Its `threading.get_native_id()`."""
    ms: float
    """How many milliseconds it took, or has taken so far."""
    goes_on: bool
    """Whether it was still going on when this was reported."""
    holder: str | None
    """The name of the thread that held the GIL for most of that time; None if it is not known."""
    holder_tid: int | None
    """Its `threading.get_native_id()`."""
    line: str | None
    """Where that thread was seen most often meanwhile, as `function (file:line)`, or None."""
    stalls: int
    """How many stalls this one represents: it is the longest since the last report."""


class Watch(ABC):
    """A watch of this process, which `watch` began; a `with` block ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @abstractmethod
    def stop(self) -> None:
        """End it. Stalls seen so far are reported before this returns."""

    @abstractmethod
    def snapshot(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write what is kept, as the function `snapshot` does."""


class _Watching(Watch):
    def __init__(self, recorder: _native.Recorder, call: Callable[[Stall], object] | None) -> None:
        self._recorder, self._call = recorder, call
        self._snapshots = recorder.snapshots()
        self._over = Event()
        self._pid = os.getpid()
        self._thread = Thread(target=self._tell, name="ungil-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        global _watch
        if self._over.is_set() or self._pid != os.getpid():
            return
        self._over.set()
        self._recorder.stop()
        atexit.unregister(self.stop)
        with _lock:
            if _watch is self:
                _watch = None
        if current_thread() is not self._thread:
            self._thread.join()

    def snapshot(self, path: str | os.PathLike[str] | None = None) -> Path:
        return _written_to(path, self._snapshots.take)

    def _tell(self) -> None:
        while True:
            text = self._snapshots.next(_PAUSE_S)
            if text is None:
                if self._over.is_set():
                    return
                continue
            stall = _stall(written(text))
            if stall is not None and self._call is not None:
                try:
                    self._call(stall)
                except Exception as error:
                    # As `threading` does for a thread: said on stderr, and it goes on.
                    sys.excepthook(type(error), error, error.__traceback__)


_lock = Lock()
_watch: Watch | None = None


def watch(
    wait_ms: float | None = 50.0,
    call: Callable[[Stall], object] | None = None,
    *,
    hold_ms: float | None = None,
    last_s: float = LAST_S,
) -> Watch:
    """Keep the last `last_s` seconds of this process, and call `call` when a thread stalls.

    `call` gets a `Stall` when a thread has waited for the GIL for more than `wait_ms`
    milliseconds, or has held it for more than `hold_ms`, whether or not another one waited; None
    sets no such limit. It runs in a thread of its own, one call at a time; stalls within one second
    are reported as one. What it raises goes to `sys.excepthook`. `snapshot()` writes what is kept.
    Native threads that never acquire the GIL do the recording, in 40 MiB at most.

    Ends with `stop()`, with the `with` block, or with the program. A forked child is not watched.

    Raises RuntimeError if this process is watched already, ValueError for a duration that is not
    above zero, `HookError` where its GIL cannot be recorded, or another ungil is recording it.
    """
    global _watch
    limits = (("wait_ms", wait_ms), ("hold_ms", hold_ms), ("last_s", last_s))
    for name, value in limits:
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value}, but must be above zero")
    conditions = [("wait", wait_ms), ("hold", hold_ms)]
    with _lock:
        if _watch is not None:
            raise RuntimeError("this process is watched already: stop() that watch first")
        flight = Flight(
            last_s=last_s,
            conditions=tuple((limit, ms) for limit, ms in conditions if ms is not None),
            writes=False,
        )
        recorder = new_recorder(_name(), follow_children=False, flight=flight)
        try:
            recorder.join()
        except RuntimeError as error:
            raise HookError(f"the GIL of this process cannot be watched: {error}") from None
        _watch = _Watching(recorder, call)
        atexit.register(_watch.stop)
        return _watch


def snapshot(path: str | os.PathLike[str] | None = None) -> Path:
    """Write the last seconds of this process to a new trace file, and return its path.

    ungil keeps them after `watch()`, and in a program under `ungil trace --last`. Without `path`,
    the file is `ungil-PROGRAM-1.pftrace`, or has the next free number. It is in the folder in which
    the watch, or `ungil trace`, began. `ungil report` reads it.

    Raises `NotInstalled` if nothing is kept, FileExistsError if the file exists, OSError if it
    cannot be written.
    """
    watching = _watch
    try:
        if watching is not None:
            return watching.snapshot(path)
        return _written_to(path, partial(_native.ask_for_snapshot, os.getpid()))
    except (LookupError, RuntimeError):
        raise NotInstalled(
            "this process keeps no events: call ungil.gil.watch(), or start the program with "
            "`ungil trace --last 30s`"
        ) from None


def _written_to(path: str | os.PathLike[str] | None, take: Callable[[str | None], str]) -> Path:
    to = None if path is None else Path(path).absolute()
    if to is not None and to.exists():
        raise FileExistsError(f"{str(to)!r} exists")
    told = written(take(None if to is None else str(to)))
    if told["path"] is None:
        raise OSError(native_reason(told["error"] or "it was not written"))
    return Path(told["path"])


def _name() -> str:
    """What snapshots are called after."""
    program = Path(sys.argv[0] if sys.argv else "").stem or "python"
    return str(Path(f"ungil-{program}.pftrace").absolute())


def _stall(told: Written) -> Stall | None:
    cause = told["cause"]
    if cause is None:
        return None
    holder = cause["holder"]
    return Stall(
        kind=cause["condition"]["limit"],
        thread=cause["thread"],
        tid=cause["tid"],
        ms=cause["length_ns"] / 1e6,
        goes_on=cause["goes_on"],
        holder=None if holder is None else holder["thread"],
        holder_tid=None if holder is None else holder["tid"],
        line=None if holder is None else holder["line"],
        stalls=told["stalls"],
    )


def _forget_after_fork() -> None:
    global _watch, _lock
    # The recorder's threads are the parent's, and so is what it has written.
    _watch, _lock = None, Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
