"""`fanout`: for callers without an event loop."""

import atexit
from _weakref import ref  # weakref itself takes longer to import than a thousand items to run

from ungil.fanout._collector import expect
from ungil.fanout._failures import Stopped
from ungil.fanout._mode import choose_here, name_of
from ungil.fanout._plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Generic, Protocol, Self, Unpack

    from typing_extensions import TypeVar

    from ungil._native import Dispatcher, Outcome
    from ungil.fanout._options import Options
    from ungil.fanout._progress import Display

    _Item = TypeVar("_Item", default=Any)
    _Value = TypeVar("_Value", default=Any)

    class Engine(Protocol):
        """What runs the items: one for each mode."""

        name: str

        def advance(self) -> None:
            """Runs until something has finished."""
            ...

        def wake(self) -> None:
            """Lets `advance` come back soon, after a stop; called in a signal's handler."""
            ...

        def close(self, *, wait: bool = True) -> None:
            """Ends what runs; unless it shall not `wait`, also what cannot be cancelled."""
            ...
else:
    from types import GenericAlias

    _Item = _Value = object

    class Generic:
        """`typing.Generic`, without typing."""

        __class_getitem__ = classmethod(GenericAlias)


def fanout(
    fn: "Callable[[_Item], Awaitable[_Value] | _Value]",
    items: "Iterable[_Item]",
    *,
    in_order: bool = True,
    **options: "Unpack[Options[_Item]]",
) -> "Outcomes[_Item, _Value]":
    """Calls `fn` with each of the items, many at once; gives an outcome for each, in their order.

        for outcome in fanout(backup, hosts, timeout=30, retries=2):
            print(outcome.item, outcome.value if outcome.ok else outcome.exception)

    Like `map`, it works as it is iterated: `list(fanout(...))` runs everything. The input may be
    endless. At most 10,000 items, and twice as many as run at once, are taken from it before the
    outcomes of those before them are. With `in_order=False` outcomes come as they finish, so that
    none waits for one before it.

    The other keyword arguments are those of `Options`, where each of them is explained: `limit`,
    how many run at once, `mode`, how they run, `timeout`, `retries` and the rest.

    In mode "threads" a thread of its own reads the input, unless it is a list or another collection
    of Python: a slow input keeps no outcome back. If only one thread may use the input, as with a
    cursor of sqlite3, open it in a generator, or make a list first. In the other modes, everything
    waits for a slow input; `Fanout.stream` with an asynchronous generator does not.

    In a notebook's cell, an event loop runs, and it would be blocked while you wait for outcomes.
    So functions that are not an `async def` run in threads there, and an `async def` is refused
    without an engine. In a coroutine, everything is refused: use `Fanout`.

    Raises ValueError and TypeError for impossible options; RuntimeError where an event
    loop runs, as said. What `fn` raises is in the outcomes; what `items` raises is raised
    after the outcomes of the items before it.
    """
    if in_order not in (True, False):
        raise TypeError(f"in_order={in_order!r} is neither True nor False")
    return Outcomes(fn, items, Plan(options), in_order=in_order)


# How many exceptions are kept for `raise_for_failures`: an endless input may have more.
MOST_FAILURES = 10_000


class Outcomes(Generic[_Item, _Value]):
    """The outcomes of a fan-out, one for each item, in the order of the items or as they finish.

    Iterate over them, once. `with fanout(...) as outcomes:` closes them at its end; so does
    dropping them.
    """

    mode: str
    """The mode that was chosen: "lean", "asyncio", "threads" or "green"."""
    reason: str
    """Why, in a few words."""

    def __init__(
        self,
        fn: "Callable[[_Item], Awaitable[_Value] | _Value]",
        items: "Iterable[_Item]",
        plan: Plan,
        *,
        in_order: bool = True,
    ) -> None:
        """Made by `fanout`."""
        self.mode, self.reason = choose_here(fn, plan.mode, plan.engine)
        self._fn = fn
        self._items = items
        self._plan = plan
        self._journal = plan.open_journal(fn)
        self._dispatcher = plan.dispatcher(
            items, mode=self.mode, in_order=in_order, journal=self._journal
        )
        self._take = self._dispatcher.take
        self._engine: Engine | None = None
        self._advancing = False
        self._display: Display | None = None
        self._taken = 0
        self._failed = 0
        self._failures: list[BaseException] = []  # the first of them
        self._exhausted = False
        self._stopped = False
        self._interrupted = False
        self._closed = False

    def __iter__(self) -> "Self":
        """Raises RuntimeError if all of them were taken: they are not kept."""
        if self._exhausted:
            raise RuntimeError(
                f"all {self._taken} outcomes of this fan-out have already been taken: outcomes = "
                "list(fanout(...)) keeps them for another pass"
            )
        return self

    def __next__(self) -> "Outcome[_Item, _Value]":
        try:
            outcome = self._take()
        except BaseException:  # the input's own
            self.close()
            raise
        if outcome is None:
            outcome = self._advance()
        self._taken += 1
        if not outcome.ok:
            self._keep(outcome)
        return outcome

    def _keep(self, outcome: "Outcome") -> None:
        self._failed += 1
        if self._failed <= MOST_FAILURES and outcome.exception is not None:
            self._failures.append(outcome.exception)

    def _advance(self) -> "Outcome":
        if self._closed:
            self._exhausted = True
            raise StopIteration
        if self._advancing:
            raise RuntimeError("a fan-out cannot wait for its own outcomes in its input or fn")
        self._advancing = True
        try:
            outcome = self._next_finished()
        except BaseException:
            self._advancing = False
            self.close()
            raise
        self._advancing = False
        if outcome is None:
            self.close()
            self._exhausted = True
            raise StopIteration
        return outcome

    def _next_finished(self) -> "Outcome | None":
        engine = self._engine
        if engine is None:
            engine = self._engine = _engine(self.mode, self._fn, self._dispatcher, self._plan)
            _open.add(ref(self, _open.discard))
            self._display = self._plan.show(self._dispatcher, self._items, self._fn)
        while (outcome := self._take()) is None and not self._dispatcher.ended:
            if self._interrupted:
                raise KeyboardInterrupt
            expect(self, self._dispatcher.running + self._dispatcher.room)
            engine.advance()
        return outcome

    @property
    def report(self) -> str:
        """The mode and why it was chosen; what `limit="auto"` has found and what limits it."""
        return self._plan.report(self.mode, self.reason, self._dispatcher)

    @property
    def running(self) -> int:
        """How many items run now."""
        return self._dispatcher.running

    def stop(self) -> None:
        """Starts nothing more; what runs goes on to its end, and its outcomes come.

        What waits to be tried again, for its group or for the rate, fails with `Stopped`. May be
        called in the handler of a signal. After it, ending the fan-out does not wait for threads.
        """
        self._stopped = True
        self._dispatcher.stop(Stopped("not run: the fan-out was stopped before"))
        if self._engine is not None:
            self._engine.wake()

    def interrupt(self) -> None:
        """Like `stop`, but the next outcome is a KeyboardInterrupt, which cancels what runs.

        In a signal handler, it is raised where it does no harm: not inside an item. So items that
        block an event loop also delay it.
        """
        self._interrupted = True
        self.stop()

    def close(self) -> None:
        """Starts nothing more and ends what runs: cancels coroutines, waits for threads.

        Outcomes that were not taken can still be taken. Called by its own function or input, it
        starts nothing more, but ends nothing that runs.
        """
        if self._closed:
            return
        self._dispatcher.stop(Stopped("not run: the fan-out was closed before"))
        if self._advancing:
            return
        self._closed = True
        try:
            if self._engine is not None:
                self._engine.close(wait=not self._stopped)
        finally:
            expect(self, 0)
            if self._journal is not None:
                self._journal.close()
            if self._display is not None:
                self._display.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Left by `break`: what runs ends, as with a generator.
        if getattr(self, "_engine", None) is not None:
            self.close()

    def __repr__(self) -> str:
        name = name_of(self._fn)
        if self._taken:
            return f"<ungil.fanout.Outcomes of {name}: {self._taken:,} taken>"
        return f"<ungil.fanout.Outcomes of {name}: items run as you iterate, as in list(...)>"

    def raise_for_failures(self) -> "list[_Value]":
        """Runs what has not run; the values of the outcomes that nobody has taken, in order.

        Raises an ExceptionGroup of all failures, including those taken before; a BaseExceptionGroup
        if one of them is no Exception, such as a SystemExit. Of more than 10,000 failures, it holds
        the first 10,000 and says how many there were.
        """
        taken = [] if self._exhausted else list(self)
        if self._failures:
            raise _group(self._failures, self._failed, self._taken)
        return [outcome.unwrap() for outcome in taken]


_open: "set[ref[Outcomes]]" = set()


@atexit.register
def _close_all() -> None:
    # Later, threads stand still for ever, with the locks that they have, and modules are gone.
    for reference in tuple(_open):
        if (outcomes := reference()) is not None:
            outcomes.close()


def raise_for_failures(outcomes: "Iterable[Outcome[object, _Value]]") -> "list[_Value]":
    """The values, in order, or an ExceptionGroup of all failures.

    For outcomes that you kept; `Outcomes` has a method of this name for those still to come. The
    group is a BaseExceptionGroup if one of the failures is no Exception, such as a SystemExit.
    """
    if isinstance(outcomes, Outcomes):
        return outcomes.raise_for_failures()  # pyright: ignore[reportUnknownVariableType]
    taken = list(outcomes)
    errors = [error for outcome in taken if (error := outcome.exception) is not None]
    if errors:
        raise _group(errors, len(errors), len(taken))
    return [outcome.unwrap() for outcome in taken]


def _group(
    errors: list[BaseException], failed: int, taken: int
) -> BaseExceptionGroup[BaseException]:
    first = f"; these are the first {len(errors)}" if len(errors) < failed else ""
    return BaseExceptionGroup(f"{failed} of {taken} items failed{first}", errors)


def _engine(
    mode: str, fn: "Callable[[Any], Any]", dispatcher: "Dispatcher", plan: Plan
) -> "Engine":
    timeout = plan.timeout
    if plan.engine is not None:
        from ungil.fanout import _engine as engines

        return engines.Engine(fn, mode, dispatcher, plan)
    # Each is imported only when it is needed: asyncio alone takes longer than 10,000 tasks.
    if mode == "asyncio":
        from ungil.fanout._asyncio import Loop, awaiting

        return Loop(awaiting(fn), dispatcher, timeout, plan.limit)
    if mode == "lean":
        from ungil.fanout._lean import Loop

        return Loop(fn, dispatcher, timeout)
    if mode == "green":
        from ungil.fanout._green import Green

        return Green(fn, dispatcher, timeout)
    from ungil.fanout._threads import Threads

    return Threads(fn, dispatcher, timeout)
