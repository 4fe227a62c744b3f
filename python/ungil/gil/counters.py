"""What the GIL costs this very program: exact counters of its own threads.

Counting begins with `install()` and never ends; a program under `ungil trace` is counted from its
start.
All times are in nanoseconds. What `ungil._native` hands out is documented in `_native.pyi`.
"""

import threading
from dataclasses import dataclass
from types import TracebackType

from ungil import _native
from ungil.errors import HookError, NotInstalled
from ungil.gil.installation import is_off


@dataclass(frozen=True, slots=True)
class ThreadStats:
    """What one thread did with the GIL since counting began or since the thread began."""

    name: str
    """`threading.Thread.name`, or the kernel's thread id if `threading` does not know the thread"""
    tid: int
    """the kernel's thread id, `threading.get_native_id()`"""
    waits: int
    """how often it asked for the GIL, did not get it at once, and got it"""
    waited_ns: int
    """how long that took, including its current wait"""
    holds: int
    """how often it held the GIL and released it"""
    held_ns: int
    """how long it held the GIL, including its current hold"""
    voluntary: int
    """releases that nobody had asked for, mostly before blocking calls"""
    forced: int
    """releases because another thread had waited for a switch interval"""
    drop_requests: int
    """how often it waited for a switch interval and asked the holder to release the GIL"""


def stats() -> dict[int, ThreadStats]:
    """What each running thread did with the GIL, by `threading.get_ident()`.

    A thread appears with its first wait, acquire or release. The numbers belong to one moment:
    the caller holds the GIL, so no other thread can end a hold or a wait meanwhile.
    Raises `NotInstalled` if the process is not counted.
    """
    if not _native.gil_installed():
        raise _not_counted()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    result: dict[int, ThreadStats] = {}
    for numbers in _native.gil_stats():
        ident = numbers.pop("ident")
        name = names.get(ident) or str(numbers["tid"])
        result[ident] = ThreadStats(name=name, **numbers)
    return result


@dataclass(frozen=True, slots=True)
class ProcessStats:
    """What all threads did with the GIL since counting began, those that have ended included."""

    waits: int
    """how often a thread asked for the GIL, did not get it at once, and got it"""
    waited_ns: int
    """how long that took, including current waits"""
    holds: int
    """how often a thread held the GIL and released it"""
    held_ns: int
    """how long threads held the GIL, including the current hold"""
    voluntary: int
    """releases that nobody had asked for, mostly before blocking calls"""
    forced: int
    """releases because another thread had waited for a switch interval"""
    drop_requests: int
    """how often a thread waited for a switch interval and asked the holder to release the GIL"""
    threads: int
    """how many running threads are counted"""
    waiting: int
    """how many of them wait for the GIL at this moment"""


def process_stats() -> ProcessStats:
    """What the whole process did with the GIL, its ended threads included.

    Raises `NotInstalled` if the process is not counted.
    """
    if not _native.gil_installed():
        raise _not_counted()
    return ProcessStats(*map(sum, zip(*_native.gil_totals(), strict=True)))


class Cost:
    """What a block of code cost the thread that ran it. It counts until the block ends.

    It covers all that this thread did meanwhile. Around an `await`, that includes other tasks that
    the event loop ran in this thread.
    """

    __slots__ = ("_after", "_before")

    def __init__(self) -> None:
        """Made by `measure`."""

    def __enter__(self) -> "Cost":
        """Begin."""
        self._after: tuple[int, ...] | None = None
        self._before = _thread_stats()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End, also if the block raises."""
        self._after = _thread_stats()

    def _since(self, field: int) -> int:
        """How much a field of `gil_thread_stats` has grown."""
        return (self._after or _thread_stats())[field] - self._before[field]

    @property
    def waits(self) -> int:
        """How often the thread asked for the GIL, did not get it at once, and got it."""
        return self._since(0)

    @property
    def waited_ns(self) -> int:
        """How long it waited for the GIL."""
        return self._since(1)

    @property
    def holds(self) -> int:
        """How often it held the GIL and released it, without the hold in which the block ends."""
        return self._since(2)

    @property
    def held_ns(self) -> int:
        """How long it held the GIL, so that no other thread could run Python code."""
        return self._since(3)

    @property
    def forced(self) -> int:
        """How often it had to release it because another thread had waited a switch interval."""
        return self._since(5)

    @property
    def wall_ns(self) -> int:
        """How long the block took."""
        return self._since(7)

    @property
    def cpu_ns(self) -> int:
        """CPU time of the thread, `time.thread_time_ns()`."""
        return self._since(8)

    def __repr__(self) -> str:
        """All of it."""
        fields = ("waits", "waited_ns", "holds", "held_ns", "forced", "wall_ns", "cpu_ns")
        return f"Cost({', '.join(f'{field}={getattr(self, field)}' for field in fields)})"


def measure() -> Cost:
    """Measure a `with` block in the calling thread.

    It takes 1 to 2 microseconds, most of them for the kernel's clock of CPU time.
    Entering the block raises `NotInstalled` if the process is not counted, and `HookError` in a
    program that has more threads than ungil can count.
    """
    return Cost()


def _thread_stats() -> tuple[int, ...]:
    try:
        return _native.gil_thread_stats()
    except RuntimeError as error:
        if not _native.gil_installed():
            raise _not_counted() from None
        raise HookError(f"this thread cannot be measured: {error}") from None


def _not_counted() -> NotInstalled:
    if is_off():
        return NotInstalled(
            "this Python is free-threaded and its GIL is off, so there is no GIL to count: "
            "`ungil trace` tells what its threads wait for"
        )
    return NotInstalled(
        "the GIL of this process is not counted: call ungil.gil.install() first, or start the "
        "program with `ungil trace`"
    )
