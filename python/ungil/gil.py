"""What the GIL costs this very program: exact counters of its own threads.

    from ungil import gil

    gil.install()                       # once, at any time
    with gil.measure() as cost:
        handle(request)
    print(cost.waited_ns / cost.wall_ns)

Counting begins with `install()`; a program under `ungil trace` is counted from its start. It costs
some tens of nanoseconds at each release and acquire of the GIL, and never ends.
Times are in nanoseconds. Threads of sub-interpreters with a GIL of their own are counted too.
"""

import threading
from dataclasses import dataclass
from types import TracebackType

from ungil import _native
from ungil.errors import HookError, NotInstalled

__all__ = ["Cost", "ThreadStats", "install", "installed", "measure", "stats"]


@dataclass(frozen=True, slots=True)
class ThreadStats:
    """What one thread did with the GIL since `install()` or since the thread began."""

    name: str
    """`threading.Thread.name`, or the thread id as text if `threading` does not know the thread."""
    tid: int
    """The kernel's thread id (`threading.get_native_id()`)."""
    waits: int
    """Waits that ended: the thread asked for the GIL, did not get it at once, and got it."""
    waited_ns: int
    """Their length, with the wait it is in now."""
    holds: int
    """Holds that ended."""
    held_ns: int
    """Their length, with the hold it is in now."""
    voluntary: int
    """Releases that nobody had asked for: before blocking calls, mostly."""
    forced: int
    """Releases because another thread had waited for a switch interval."""
    drop_requests: int
    """How often this thread waited for a switch interval and asked the holder to let go."""


def install() -> None:
    """Start to count in this process. Does nothing if it is counted already.

    Raises `HookError` where that is impossible: on free-threaded Python, PyPy, unknown builds.
    Children that are forked from here are counted too, each for itself; programs that are
    executed from here are not.
    """
    try:
        _native.gil_install()
    except RuntimeError as error:
        raise HookError(f"the GIL cannot be recorded in this process: {error}") from None


def installed() -> bool:
    """Whether this process is counted, by `install()` or because it runs under `ungil trace`."""
    return _native.gil_installed()


def stats() -> dict[int, ThreadStats]:
    """What each running thread did with the GIL, by `threading.get_ident()`.

    A thread appears when it has waited for or released the GIL once. The numbers belong to one
    moment: the caller holds the GIL, so no other thread can end a hold or a wait meanwhile.
    Raises `NotInstalled` before `install()`.
    """
    _require_installed()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return {
        (ident := counted.pop("ident")): ThreadStats(
            name=names.get(ident, str(counted["tid"])), **counted
        )
        for counted in _native.gil_stats()
    }


class Cost:
    """What a block of code cost the thread that ran it. Grows until the block has ended.

    It counts all that this thread did meanwhile. Around an `await` that includes whatever other
    tasks the event loop ran in this thread; around code without one it is exact in asyncio too.
    """

    __slots__ = ("_after", "_before")

    _before: _native.GilThreadStats
    _after: _native.GilThreadStats | None

    def __enter__(self) -> "Cost":
        """Begin."""
        self._after = None
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

    def _difference(self, field: int) -> int:
        return (self._after or _thread_stats())[field] - self._before[field]

    @property
    def waits(self) -> int:
        """Waits that ended."""
        return self._difference(0)

    @property
    def waited_ns(self) -> int:
        """How long the thread wanted the GIL and did not have it."""
        return self._difference(1)

    @property
    def holds(self) -> int:
        """Holds that ended; the one that the block itself ends in is not among them."""
        return self._difference(2)

    @property
    def held_ns(self) -> int:
        """How long the thread had the GIL, so that no other one could run Python code."""
        return self._difference(3)

    @property
    def voluntary(self) -> int:
        """Releases that nobody had asked for."""
        return self._difference(4)

    @property
    def forced(self) -> int:
        """Releases because another thread had waited for a switch interval."""
        return self._difference(5)

    @property
    def wall_ns(self) -> int:
        """How long the block took (`CLOCK_MONOTONIC`)."""
        return self._difference(7)

    @property
    def cpu_ns(self) -> int:
        """CPU time of the thread (`time.thread_time_ns()`)."""
        return self._difference(8)

    def __repr__(self) -> str:
        """All of it, in declared order."""
        names = ("waits", "waited_ns", "holds", "held_ns", "forced", "wall_ns", "cpu_ns")
        return f"Cost({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


def measure() -> Cost:
    """Measure the GIL waits and holds of a `with` block in the calling thread.

    Raises `NotInstalled`, when the block is entered, before `install()`.
    """
    return Cost()


def _require_installed() -> None:
    if not installed():
        raise NotInstalled("the GIL of this process is not recorded: call ungil.gil.install()")


def _thread_stats() -> _native.GilThreadStats:
    try:
        return _native.gil_thread_stats()
    except RuntimeError as error:
        _require_installed()
        raise HookError(f"this thread cannot be measured: {error}") from None
