"""The options of a fan-out, checked: each mistake is one sentence."""

import sys

from ungil._native import Dispatcher
from ungil.fanout._ceiling import ceiling
from ungil.fanout._failures import failure
from ungil.fanout._retry_after import too_much

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from os import PathLike
    from typing import Any, Literal

    from ungil.fanout._journal import Journal
    from ungil.fanout._progress import Display, Progress

    PerGroup = int | Mapping[Any, int]
    Wait = Callable[[Exception, int], float | None]
    Mode = Literal["auto", "lean", "asyncio", "threads", "green"]

MODES = ("auto", "lean", "asyncio", "threads", "green")

# How many finished outcomes may wait for a slow one before them, or for a slow consumer.
WINDOW = 10_000

# How many items may have been given to an engine's workers and not have come back.
_WITH_WORKERS = 100_000

# A rate lets so many seconds' worth of starts go at once: timers are not finer than that.
_BURST_SECONDS = 0.01


class Backoff:
    """How long to wait before an item is tried again.

    `first` seconds after the first failure, `factor` times longer after each further one, at most
    `most`. Of each wait the share `jitter` is left to chance, so that items which failed together
    are not tried again together.
    """

    __slots__ = ("factor", "first", "jitter", "most")

    def __init__(
        self, first: float = 0.1, *, factor: float = 2.0, most: float = 30.0, jitter: float = 0.5
    ) -> None:
        for name, value, least in (("first", first, 0), ("most", most, 0), ("factor", factor, 1)):
            if not value >= least:
                raise ValueError(f"backoff's {name}={value!r} is below {least}")
        if not 0 <= jitter <= 1:
            raise ValueError(f"backoff's jitter={jitter!r} is not a share from 0 to 1")
        self.first = first
        self.factor = factor
        self.most = most
        self.jitter = jitter

    def __repr__(self) -> str:
        return (
            f"Backoff({self.first!r}, factor={self.factor!r}, most={self.most!r}, "
            f"jitter={self.jitter!r})"
        )


class Options:
    """What `fanout` and `Fanout` take, checked."""

    __slots__ = (
        "backoff",
        "ceiling",
        "engine",
        "group",
        "journal",
        "key",
        "limit",
        "mode",
        "opening",
        "per_group",
        "progress",
        "rate",
        "retries",
        "retry_if",
        "timeout",
        "wait",
    )

    def __init__(
        self,
        *,
        limit: "int | str",
        mode: str,
        timeout: float | None,
        retries: int,
        retry_if: "Callable[[Exception], object] | None",
        backoff: "Backoff | Wait | None",
        rate: float | None,
        per_group: "PerGroup | None",
        group: "Callable[[Any], Hashable] | None",
        engine: "Any" = None,
        progress: "bool | Callable[[Progress], object] | Display | None" = None,
        journal: "str | PathLike[str] | Journal | None" = None,
        key: "Callable[[Any], object] | None" = None,
    ) -> None:
        if limit != "auto" and not (isinstance(limit, int) and limit >= 1):
            raise ValueError(f'limit={limit!r} is neither "auto" nor a number from 1 up')
        if mode not in MODES:
            raise ValueError(f"mode={mode!r} is none of {', '.join(MODES)}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout={timeout!r} is not a number of seconds above 0")
        if retries < 0:
            raise ValueError(f"retries={retries!r} is below 0")
        if rate is not None and not rate > 0:
            raise ValueError(f"rate={rate!r} is not a number of starts a second above 0")
        if per_group is not None and group is None:
            raise ValueError(
                f"per_group={per_group!r} needs group, a function that tells an item's group"
            )
        if isinstance(per_group, int) and per_group < 1:
            raise ValueError(f"per_group={per_group!r} is below 1")
        if key is not None and journal is None:
            raise ValueError("key needs journal, the file in which items are known by their keys")
        if engine is not None:
            from ungil.fanout._engine import named

            named(engine)
            if mode in ("lean", "green"):
                raise ValueError(
                    f"mode={mode!r} cannot be used with an engine: "
                    "its workers run async functions on asyncio and others in threads"
                )
        self.limit = limit
        self.mode = mode
        self.ceiling: str | None = None  # what holds limit="auto" at most
        self.opening = "unknown"  # what the items of limit="auto" are; or "hosts"
        self.timeout = timeout
        self.retries = retries
        self.retry_if = retry_if
        self.backoff, self.wait = Backoff(), None
        if isinstance(backoff, Backoff):
            self.backoff = backoff
        elif callable(backoff):
            self.wait = backoff
        elif backoff is not None:
            raise TypeError(
                f"backoff={backoff!r} is neither a Backoff nor a function of an exception and the "
                "number of its attempt"
            )
        self.rate = rate
        self.per_group = per_group
        self.group = group
        self.engine = engine
        self.progress = progress
        self.journal = journal
        self.key = key

    def open_journal(self, fn: "Callable[..., Any]") -> "Journal | None":
        """The journal of what `fn` does; raises what `Journal` raises."""
        journal = self.journal
        if journal is None:
            return None
        from ungil.fanout._journal import Journal, qualified_name

        if isinstance(journal, Journal):
            return journal
        return Journal(journal, qualified_name(fn), self.key)

    def show(
        self, dispatcher: Dispatcher, items: object, fn: "Callable[..., Any]"
    ) -> "Display | None":
        """Begins to show the progress, if that is asked for."""
        if not self.progress:
            return None
        from ungil.fanout._mode import name_of
        from ungil.fanout._progress import Meter, display_for

        display = display_for(self.progress)
        display.open(Meter(dispatcher, items, name_of(fn)))
        return display

    def dispatcher(
        self,
        items: "Iterable[Any] | None",
        *,
        mode: str,
        in_order: bool,
        window: int = WINDOW,
        journal: "Journal | None" = None,
    ) -> Dispatcher:
        """What says which of the items may run now; without items, they are put into it."""
        backoff = self.backoff
        rate = self.rate
        retry_if = self.retry_if
        if self.engine is not None:
            # The workers keep the limit, each its share, or find it.
            limit, opening, retry_if = _WITH_WORKERS, None, _unless_of_engine(retry_if)
        elif isinstance(self.limit, int):
            limit, opening = self.limit, None
        else:
            limit, self.ceiling = ceiling(threads=mode == "threads")
            # The keys of a mapping are different things, as hosts are.
            hosts = self.opening == "hosts" or hasattr(items, "keys")
            opening = ("hosts" if hosts else "unknown", mode == "threads")
        return Dispatcher(
            None if items is None else iter(items),
            limit=limit,
            opening=opening,
            window=window,
            in_order=in_order,
            rate=None if rate is None else (rate, max(1.0, rate * _BURST_SECONDS)),
            retries=self.retries,
            retry_if=retry_if,
            wait=_waiting(self.wait) if self.retries else None,
            backoff=(backoff.first, backoff.factor, backoff.most, backoff.jitter),
            group=self._membership(),
            resume=None if journal is None else journal.resume,
            finished=None if journal is None else journal.finished,
            name=failure,
            too_much=too_much if opening is not None or rate is not None else None,
        )

    def report(self, mode: str, reason: str, dispatcher: Dispatcher) -> str:
        """In which mode it runs and why; what `limit="auto"` has found so far and what held it."""
        said = f"mode {mode}: {reason}"
        if (found := dispatcher.found) is not None:
            said += f". {found}. At most: {self.ceiling}"
        return said

    def _membership(self) -> "Callable[[Any], tuple[Hashable, int] | None] | None":
        group, per_group = self.group, self.per_group
        if group is None:
            return None
        if per_group is None:
            return lambda item: (group(item), sys.maxsize)  # only for limit="auto"
        if isinstance(per_group, int):
            return lambda item: (group(item), per_group)

        def membership(item: "Any") -> "tuple[Hashable, int] | None":
            name = group(item)
            most = per_group.get(name)
            if most is None:
                return name, sys.maxsize
            if most < 1:
                raise ValueError(f"per_group[{name!r}]={most!r} is below 1: {item!r} cannot run")
            return name, most

        return membership


def _waiting(own: "Wait | None") -> "Callable[[Exception, int], tuple[float, bool] | None]":
    def wait(error: Exception, attempt: int) -> tuple[float, bool] | None:
        if own is not None and (seconds := own(error, attempt)) is not None:
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"backoff has given {seconds!r} for {error!r}: no seconds to wait")
            return seconds, True
        asked = too_much(error)
        return None if asked is None else (asked, False)

    return wait


def _unless_of_engine(
    retry_if: "Callable[[Exception], object] | None",
) -> "Callable[[Exception], object]":
    from ungil.errors import EngineError

    def worth_another(error: Exception) -> object:
        # What kills its worker or cannot be pickled would do so again.
        return not isinstance(error, EngineError) and (retry_if is None or retry_if(error))

    return worth_another
