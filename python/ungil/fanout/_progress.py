"""How far a fan-out is: a bar on the terminal, or told to a function.

Nothing is counted for it: whoever draws asks the dispatcher, a few times a second, from a thread
of its own.
"""

import sys
import threading
import time
from collections import deque

from ungil.formatting import clock_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from rich.console import RenderableType
    from rich.live import Live

    from ungil._native import Dispatcher

    class Display(Protocol):
        """What shows the progress of one fan-out."""

        def open(self, meter: "Meter") -> None:
            """Shows it from now on."""
            ...

        def close(self) -> None:
            """Shows how it ended, and no more."""
            ...


# What is done in so many seconds gives the rate.
_RATE_SECONDS = 10.0
_CALLS_EVERY = 1.0
_DRAWN_A_SECOND = 5
# More kinds of failures than these are "others".
_KINDS = 3


class Progress:
    """The progress of a fan-out at one moment. As a text, it is one line."""

    __slots__ = (
        "done",
        "failed",
        "failures",
        "left",
        "limit",
        "rate",
        "resumed",
        "retried",
        "running",
        "seconds",
        "total",
    )

    total: int | None
    """How many items there are; None if the input has no length."""
    done: int
    """How many have finished, well or not."""
    failed: int
    """How many of these have failed."""
    failures: dict[str, int]
    """How many have failed in which way, the most frequent first: "timeout", the name of another
    exception, "exit 255" of a command."""
    resumed: int
    """How many of those an earlier run did, as the journal says."""
    retried: int
    """How many attempts were repeated, or will be."""
    running: int
    """How many run now."""
    limit: int
    """How many may run at once."""
    seconds: float
    """Since the start."""
    rate: float
    """Items per second that finished lately."""
    left: float | None
    """Seconds to the end, at that rate; None if unknown."""

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,} ({_percent(self)})"
        parts = [f"{self.done:,}{of} done", *_remarks(self)]
        parts.append(f"{self.running:,} running of at most {self.limit:,}")
        parts.append(f"{_rate(self.rate)}")
        if self.left is not None:
            parts.append(f"{clock_duration(self.left)} left")
        return ", ".join(parts)


class Meter:
    """Reads the progress of a fan-out."""

    def __init__(self, dispatcher: "Dispatcher", items: object, title: str) -> None:
        self.title = title
        self._dispatcher = dispatcher
        self._items = items
        self._began = time.monotonic()
        # When how many were done, of the last seconds.
        self._past: deque[tuple[float, int]] = deque([(self._began, 0)])

    def read(self) -> Progress:
        """How far it is now."""
        _, done, resumed, failed, retried, running, limit = self._dispatcher.progress
        now = time.monotonic()
        progress = Progress()
        progress.total = _length(self._items)
        progress.done = done
        progress.failed = failed
        progress.failures = _most_first(self._dispatcher.failures)
        progress.resumed = resumed
        progress.retried = retried
        progress.running = running
        progress.limit = limit
        progress.seconds = now - self._began
        progress.rate = self._rate(now, done - resumed)
        progress.left = None
        if progress.total is not None and progress.total > done and progress.rate > 0:
            progress.left = (progress.total - done) / progress.rate
        return progress

    def stop(self, error: Exception) -> None:
        """Whoever shows it has failed: no more items start, and the caller is told."""
        self._dispatcher.close(error)

    def _rate(self, now: float, done: int) -> float:
        past = self._past
        past.append((now, done))
        while past[1][0] < now - _RATE_SECONDS:
            past.popleft()
        then, done_then = past[0]
        if done == done_then:  # nothing lately, so what was it from the start?
            then, done_then = self._began, 0
        return (done - done_then) / max(now - then, 1e-9)


class Calls:
    """Tells a function, once a second and at the end."""

    def __init__(self, tell: "Callable[[Progress], object]") -> None:
        self._tell = tell
        self._ended = threading.Event()
        self._failed = False

    def open(self, meter: Meter) -> None:
        """Calls from now on, in a thread."""
        self._meter = meter
        self._thread = threading.Thread(target=self._run, name="fanout-progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Calls once more, and raises what the function raises."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        if not self._failed:
            self._tell(self._meter.read())

    def _run(self) -> None:
        while not self._ended.wait(_CALLS_EVERY):
            try:
                self._tell(self._meter.read())
            except Exception as error:
                self._failed = True
                self._meter.stop(error)
                return


class Bar:
    """A bar on stderr, if that is a terminal that can draw one; else nothing.

    What the program prints meanwhile appears above it. The bar stays when the fan-out has ended,
    unless `keep` is False.
    """

    def __init__(self, *, keep: bool = True) -> None:
        self.keep = keep
        self._shown = False

    def open(self, meter: Meter) -> None:
        """Draws from now on."""
        self._meter = meter
        if sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            self._shown = _SCREEN.add(self)

    def close(self) -> None:
        """Draws no more."""
        if self._shown:
            self._shown = False
            _SCREEN.remove(self)

    def draw(self, width: int) -> "RenderableType":
        """The bar as it is now, for a terminal that is so wide."""
        return _drawn(self._meter.read(), self._meter.title, width)


class _Screen:
    """The terminal, where each fan-out that runs has a bar."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bars: list[Bar] = []
        self._live: Live | None = None

    def add(self, bar: Bar) -> bool:
        """Shows a bar below those that there are; False if this terminal cannot draw."""
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if self._live is None:
                console = Console(stderr=True, highlight=False)
                if not console.is_terminal or console.is_dumb_terminal:
                    return False
                self._live = Live(
                    console=console,
                    get_renderable=lambda: self._drawn(console.width),
                    refresh_per_second=_DRAWN_A_SECOND,
                    transient=True,
                    # What goes to a file must not end on the terminal.
                    redirect_stdout=sys.stdout.isatty(),
                )
            self._bars.append(bar)
            if len(self._bars) == 1:
                self._live.start(refresh=True)
        return True

    def remove(self, bar: Bar) -> None:
        """Takes a bar away; leaves its last state above the others, if it is to be kept."""
        with self._lock:
            live = self._live
            if live is None:
                return
            last = bar.draw(live.console.width)
            self._bars.remove(bar)
            if not self._bars:
                self._live = None
                live.stop()
            if bar.keep:
                live.console.print(last)

    def _drawn(self, width: int) -> "RenderableType":
        from rich.console import Group
        from rich.constrain import Constrain

        # The terminal writes ^C behind it, which must not go to the next line.
        return Constrain(Group(*[bar.draw(width) for bar in list(self._bars)]), width - 3)


_SCREEN = _Screen()


def _length(items: object) -> int | None:
    """How many items there are, if they know."""
    try:
        return len(items)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None


def kinds(failures: "dict[str, int]", shown: int = _KINDS) -> str:
    """How many have failed in which way: 7 timeout, 3 ConnectionRefusedError, 2 others."""
    named = [f"{count:,} {name}" for name, count in list(failures.items())[:shown]]
    if others := sum(list(failures.values())[shown:]):
        named.append(f"{others:,} others")
    return ", ".join(named)


def _most_first(failures: "list[tuple[str, int]]") -> dict[str, int]:
    return dict(sorted(failures, key=lambda entry: -entry[1]))


def _percent(progress: Progress) -> str:
    # Everything but one is not yet everything.
    return f"{100 * progress.done // progress.total} %" if progress.total else "100 %"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 9.95 else f"{rate:.1f}/s"


def _remarks(progress: Progress) -> list[str]:
    remarks: list[str] = []
    if progress.failed:
        remarks.append(f"{progress.failed:,} failed ({kinds(progress.failures)})")
    if progress.retried:
        remarks.append(f"{progress.retried:,} retried")
    if progress.resumed:
        remarks.append(f"{progress.resumed:,} done before")
    return remarks


def _drawn(progress: Progress, title: str, width: int) -> "RenderableType":
    """Two lines: how far it is, and what else there is to say."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    total = progress.total
    grid = Table.grid(expand=True, padding=(0, 2, 0, 0))
    if titled := width >= 72:
        grid.add_column(no_wrap=True, overflow="ellipsis", max_width=30)
    grid.add_column(ratio=1)
    for _ in range(3):
        grid.add_column(no_wrap=True)
    if total is None:
        of, percent = "", ""
        bar = ProgressBar(pulse=True)
    else:
        of, percent = f"/{total:,}", f"  {_percent(progress)}"
        bar = ProgressBar(total=max(total, 1), completed=progress.done if total else 1)
    over = progress.done == total
    left = "" if progress.left is None else f"{clock_duration(progress.left)} left"
    grid.add_row(
        *([Text(title, style="bold")] if titled else []),
        bar,
        f"{progress.done:,}{of}{percent}",
        _rate(progress.rate),
        f"in {clock_duration(progress.seconds)}" if over else left,
    )
    running = [] if over else [f"{progress.running:,} running of at most {progress.limit:,}"]
    told = Text(", ".join([*running, *_remarks(progress)]), no_wrap=True, overflow="ellipsis")
    told.highlight_regex(r"[\d,]+ failed \(.*?\)", "red")
    return Group(grid, told)
