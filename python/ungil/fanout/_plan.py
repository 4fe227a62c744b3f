"""What is asked of a fan-out, checked: each mistake is one sentence."""

import sys

from ungil._native import Dispatcher
from ungil.fanout._backoff import Backoff, is_number, waiting
from ungil.fanout._ceiling import ceiling
from ungil.fanout._failures import failure
from ungil.fanout._instant import is_instant
from ungil.fanout._mode import is_patched
from ungil.fanout._retry_after import too_much

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from typing import Any, Literal

    from typing_extensions import TypeIs

    from ungil.fanout._journal import Journal
    from ungil.fanout._options import Options
    from ungil.fanout._progress import Display

# The names in `Options`, which is not imported when a program runs.
OPTIONS = (
    "limit",
    "mode",
    "timeout",
    "retries",
    "retry_if",
    "backoff",
    "rate",
    "per_group",
    "group",
    "engine",
    "progress",
    "journal",
    "key",
)
MODES = ("auto", "lean", "asyncio", "threads", "green")

# The largest number that each of these may be.
LARGEST = {"limit": sys.maxsize, "retries": 2**32 - 1, "per_group": sys.maxsize}

# How many finished outcomes may wait for a slow one before them, or for a slow consumer.
WINDOW = 10_000

# How many items may have been given to an engine's workers and not have come back.
_WITH_WORKERS = 100_000

# A rate lets so many seconds' worth of starts go at once: timers are not finer than that.
_BURST_SECONDS = 0.01


class Plan:
    """The options of one fan-out, all of them and checked.

    What only ungil's own callers say comes besides: what the items of `limit="auto"` are known to
    be, a journal that is open already, and what shows the progress.
    Raises ValueError and TypeError for impossible options.
    """

    __slots__ = (*OPTIONS, "_display", "_opened", "_opening", "_wait", "ceiling")

    def __init__(
        self,
        options: "Options[Any]",
        *,
        opening: "Literal['unknown', 'hosts']" = "unknown",
        journal: "Journal | None" = None,
        display: "Display | None" = None,
    ) -> None:
        refuse_others(options, OPTIONS)
        self.limit = options.get("limit", "auto")
        self.mode = options.get("mode", "auto")
        self.timeout = _number("timeout", options.get("timeout"), "seconds")
        self.retries = options.get("retries", 0)
        self.retry_if = _asking(options.get("retry_if"))
        self.rate = _number("rate", options.get("rate"), "starts a second")
        self.per_group = options.get("per_group")
        self.group = options.get("group")
        self.engine = options.get("engine")
        self.progress = options.get("progress")
        self.journal = options.get("journal")
        self.key = options.get("key")
        backoff = options.get("backoff")
        if backoff is Backoff:
            raise TypeError("backoff=Backoff is the class: write backoff=Backoff()")
        self.backoff, self._wait = Backoff(), None
        if isinstance(backoff, Backoff):
            self.backoff = backoff
        elif callable(backoff):
            self._wait = backoff
        elif backoff is not None:
            raise TypeError(
                f"backoff={backoff!r} is neither a Backoff nor a function of an exception and the "
                "number of the attempt"
            )
        self.ceiling: str | None = None  # what holds limit="auto" at most
        self._opening = opening
        self._opened = journal
        self._display = display
        self._check()

    def _check(self) -> None:
        if not _is_limit(self.limit):
            raise ValueError(f'limit={self.limit!r} is neither "auto" nor a positive whole number')
        if self.mode not in MODES:
            raise ValueError(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        self._check_types()
        self._check_sizes()
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout={self.timeout!r} is not a number of seconds above 0")
        if self.retries < 0:
            raise ValueError(f"retries={self.retries!r} is below 0")
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"rate={self.rate!r} is not a number of starts a second above 0")
        if self.per_group is not None and self.group is None:
            raise ValueError(
                f"per_group={self.per_group!r} needs group, a function that returns the group of "
                "an item"
            )
        if not _is_mapping(self.per_group) and self.per_group is not None and self.per_group < 1:
            raise ValueError(f"per_group={self.per_group!r} is below 1")
        if self.key is not None and self.journal is None:
            raise ValueError("key needs journal, the file that records items by their keys")
        if self.engine is not None:
            from ungil.fanout._engine import named

            kind, _ = named(self.engine)
            if kind == "processes" and is_patched():
                raise ValueError(
                    f"engine={self.engine!r} cannot be used in a program that gevent has patched: "
                    "its pipes would stop all green threads; leave engine out"
                )
            if self.mode in ("lean", "green"):
                raise ValueError(
                    f"mode={self.mode!r} cannot be used with an engine: "
                    "its workers run async functions on asyncio and others in threads"
                )

    def _check_sizes(self) -> None:
        for name, largest in LARGEST.items():
            value = getattr(self, name)
            if value != "auto" and value is not None and not _is_mapping(value) and value > largest:
                raise ValueError(_too_large(f"{name}={value!r}", largest))

    def _check_types(self) -> None:
        if not _is_whole(self.retries):
            raise TypeError(f"retries={self.retries!r} is not a whole number")
        if not (self.per_group is None or _is_whole(self.per_group) or _is_mapping(self.per_group)):
            raise TypeError(
                f"per_group={self.per_group!r} is neither a whole number nor a mapping of groups "
                "to whole numbers"
            )
        for name, what in (
            (
                "retry_if",
                "tells whether an exception is worth another try, or classes of exceptions",
            ),
            ("group", "returns the group of an item"),
            ("key", "returns the key of an item"),
        ):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"{name}={value!r} cannot be called: give a function that {what}")
        if not (isinstance(self.progress, bool | None) or callable(self.progress)):
            raise TypeError(
                f"progress={self.progress!r} is neither True nor a function that is called with a "
                "Progress"
            )

    def open_journal(self, fn: "Callable[..., Any]") -> "Journal | None":
        """The journal of what `fn` does; raises what `Journal` raises."""
        if self.journal is None:
            return self._opened
        from ungil.fanout._journal import Journal, qualified_name

        return Journal(self.journal, qualified_name(fn), self.key)

    def show(
        self, dispatcher: Dispatcher, items: object, fn: "Callable[..., Any]"
    ) -> "Display | None":
        """Begins to show the progress, if that is asked for."""
        progress, display = self.progress, self._display
        if not progress and display is None:
            return None
        from ungil.fanout._mode import name_of
        from ungil.fanout._progress import Bar, Calls, Meter

        if progress:
            display = Bar() if progress is True else Calls(progress)
        assert display is not None, "one of both is there"
        display.open(Meter(dispatcher, items, name_of(fn)))
        return display

    def dispatcher(
        self,
        items: "Any",
        *,
        mode: str,
        in_order: bool,
        window: int = WINDOW,
        journal: "Journal | None" = None,
        is_fed: bool = False,
    ) -> Dispatcher:
        """What says which of the items may run now. If it `is_fed`, they are put into it.

        TypeError if the items are none, and it is not fed.
        """
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
            hosts = self._opening == "hosts" or hasattr(items, "keys")
            opening = ("hosts" if hosts else "unknown", mode == "threads")
        iterator = None if is_fed else _iterated(items)
        return Dispatcher(
            iterator,
            is_read_apart=mode == "threads" and self.engine is None and not is_instant(iterator),
            limit=limit,
            opening=opening,
            window=window,
            in_order=in_order,
            rate=None if rate is None else (rate, max(1.0, rate * _BURST_SECONDS)),
            retries=self.retries,
            retry_if=retry_if,
            wait=waiting(self._wait) if self.retries else None,
            backoff=(backoff.first, backoff.factor, backoff.most, backoff.jitter),
            group=self._membership(),
            resume=None if journal is None else journal.resume,
            finished=None if journal is None else journal.finished,
            name=failure,
            too_much=too_much if opening is not None or rate is not None else None,
        )

    def report(self, mode: str, reason: str, dispatcher: Dispatcher) -> str:
        """The mode and why it was chosen; what `limit="auto"` has found and what limits it."""
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
        if not _is_mapping(per_group):
            return lambda item: (group(item), per_group)

        def membership(item: "Any") -> "tuple[Hashable, int] | None":
            name = group(item)
            most = per_group.get(name)
            if most is None:
                return name, sys.maxsize
            if not _is_whole(most):
                raise TypeError(f"per_group[{name!r}]={most!r} is not a whole number")
            if most < 1:
                raise ValueError(f"per_group[{name!r}]={most!r} is below 1, so {item!r} cannot run")
            if most > LARGEST["per_group"]:
                named = f"per_group[{name!r}]={most!r}"
                raise ValueError(_too_large(named, LARGEST["per_group"]))
            return name, most

        return membership


def refuse_others(options: "Iterable[str]", known: "tuple[str, ...]") -> None:
    """TypeError for a keyword argument that is none of the options."""
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(known)}")


def _iterated(items: "Any") -> "Any":
    if not hasattr(items, "__iter__") and hasattr(items, "__aiter__"):
        raise TypeError(
            f"items is {items!r}, which only `async for` goes through: "
            "use `async with Fanout() as f: async for outcome in f.stream(fn, items)`"
        )
    try:
        return iter(items)
    except TypeError as error:
        if hasattr(items, "__iter__"):
            raise
        raise TypeError(f"items={items!r} cannot be iterated over: give a list of items") from error


def _number(name: str, value: "Any", what: str) -> float | None:
    """A number of any type as one of Python's, or None."""
    if value is None or isinstance(value, int | float):
        return value
    if not is_number(value):
        raise TypeError(f"{name}={value!r} is not a number of {what}")
    return float(value)


def _too_large(named: str, largest: int) -> str:
    return f"{named} is too large: the largest is {largest}"


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__")


def _is_mapping(value: object) -> "TypeIs[Mapping[Any, int]]":
    return hasattr(value, "keys") and hasattr(value, "get")


def _is_limit(limit: object) -> bool:
    return limit == "auto" or (isinstance(limit, int) and limit >= 1)


def _asking(retry_if: "Any") -> "Any":
    """What is asked about an exception; where classes are given, whether it is one of theirs."""
    classes = (retry_if,) if isinstance(retry_if, type) else retry_if
    if not _is_classes(classes):
        return retry_if

    def is_one_of_these(error: BaseException) -> bool:
        return isinstance(error, classes)

    return is_one_of_these


def _is_classes(these: object) -> "TypeIs[tuple[type[BaseException], ...]]":
    return isinstance(these, tuple) and all(
        isinstance(one, type) and issubclass(one, BaseException)
        for one in these  # pyright: ignore[reportUnknownVariableType]
    )


def _unless_of_engine(
    retry_if: "Callable[[Any], object] | None",
) -> "Callable[[Any], object]":
    from ungil.errors import EngineError

    def worth_another(error: BaseException) -> object:
        # What kills its worker or cannot be pickled would do so again.
        return not isinstance(error, EngineError) and (retry_if is None or retry_if(error))

    return worth_another
