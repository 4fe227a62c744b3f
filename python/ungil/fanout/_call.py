"""`fanout`: for callers without an event loop."""

from ungil.fanout._collector import expect
from ungil.fanout._failures import Stopped
from ungil.fanout._mode import choose_here
from ungil.fanout._options import Backoff, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable
    from os import PathLike
    from typing import Any, Generic, Literal, Protocol, Self

    from typing_extensions import TypeVar

    from ungil._native import Dispatcher, Outcome
    from ungil.fanout._options import Mode, PerGroup, Wait
    from ungil.fanout._progress import Display, Progress

    _Item = TypeVar("_Item", default=Any)
    _Value = TypeVar("_Value", default=Any)

    class Engine(Protocol):
        """What runs the items: one for each mode."""

        name: str

        def advance(self) -> None:
            """Runs until something has finished."""
            ...

        def wake(self) -> None:
            """Lets `advance` come back soon; called in a signal's handler."""
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
    limit: "int | Literal['auto']" = "auto",
    mode: "Mode" = "auto",
    timeout: float | None = None,
    retries: int = 0,
    retry_if: "Callable[[Exception], object] | None" = None,
    backoff: "Backoff | Wait | None" = None,
    rate: float | None = None,
    per_group: "PerGroup | None" = None,
    group: "Callable[[_Item], Hashable] | None" = None,
    engine: "Any" = None,
    progress: "bool | Callable[[Progress], object] | None" = None,
    journal: "str | PathLike[str] | None" = None,
    key: "Callable[[_Item], object] | None" = None,
    in_order: bool = True,
) -> "Outcomes[_Item, _Value]":
    """Calls `fn` with each of the items, many at once; gives an outcome for each, in their order.

    Like `map`, it works as it is iterated, and takes only so many items before they are needed:
    the input may be endless. `list(fanout(...))` runs everything.

    - `limit`: how many at once at most; "auto" finds out.
    - `mode`: "lean" or "asyncio" for an `async def`, "threads" or "green" for other functions;
      "auto" chooses (see `Outcomes.mode`).
    - `timeout`: seconds for each attempt. A coroutine and a green thread are cancelled; a thread
      goes on, and its outcome says `abandoned`.
    - `retries`: how often more an item is tried that has failed, if `retry_if` says so of its
      exception, after the wait that `backoff` gives: a `Backoff`, or a function of the exception
      and of the number of its attempt that gives seconds (None: as `Backoff()` does). If the
      exception is an HTTP answer 429 or 503 with Retry-After, that time comes first.
    - `rate`: starts a second at most.
    - `group`, `per_group`: how many items of one group at once at most; `group` tells an item's
      group, `per_group` is a number or a mapping by group. Groups that it does not name have no
      limit of their own.
    - `engine`: where it runs, if not here: "processes" on all cores ("processes:N" on N), "dask",
      "ray", the address of a cluster, a `distributed.Client`. All options hold for all workers
      together; with `limit="auto"` each finds its own. Items whose worker dies are run again: at
      least once, not exactly once. One that kills its workers fails with `ungil.errors.WorkerDied`.
    - `progress`: True for a bar on stderr, if that is a terminal; or a function, called with a
      `Progress` once a second and at the end, in another thread. What it raises is raised here.
    - `journal`: a file in which finished items are written down. Items that succeeded in an earlier
      run with that file do not run again: their outcome is `resumed`, with the value as JSON keeps
      it (None if it cannot). `key` gives what an item is known by in the file, for items that JSON
      cannot hold.

    - `in_order`: False for outcomes as they finish, so that none waits for one before it.

    In the cell of a notebook an event loop runs, which waits while outcomes are waited for:
    functions that are no `async def` run in threads there. An `async def` is refused without an
    engine, as everything is in a coroutine, whose loop would be blocked; `Fanout` is the way.

    Raises ValueError and TypeError for options that make no sense; RuntimeError where an event
    loop runs, as said. What `fn` raises is in the outcomes; what `items` raises is raised
    after the outcomes of the items before it.
    """
    options = Options(
        limit=limit,
        mode=mode,
        timeout=timeout,
        retries=retries,
        retry_if=retry_if,
        backoff=backoff,
        rate=rate,
        per_group=per_group,
        group=group,
        engine=engine,
        progress=progress,
        journal=journal,
        key=key,
    )
    return Outcomes(fn, items, options, in_order=in_order)


# How many exceptions are kept for `raise_for_failures`: an endless input may have more.
MOST_FAILURES = 10_000


class Outcomes(Generic[_Item, _Value]):
    """The outcomes of a fan-out, one for each item, in the order of the items or as they finish."""

    def __init__(
        self,
        fn: "Callable[[_Item], Awaitable[_Value] | _Value]",
        items: "Iterable[_Item]",
        options: Options,
        *,
        in_order: bool = True,
    ) -> None:
        self.mode, self.reason = choose_here(fn, options.mode, options.engine)
        self._fn = fn
        self._items = items
        self._options = options
        self._journal = options.open_journal(fn)
        self._dispatcher = options.dispatcher(
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
                f"all {self._taken} outcomes of this fan-out were taken before: "
                "outcomes = list(fanout(...)) keeps them, to go through them again"
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
            engine = self._engine = _engine(self.mode, self._fn, self._dispatcher, self._options)
            self._display = self._options.show(self._dispatcher, self._items, self._fn)
        while (outcome := self._take()) is None and not self._dispatcher.ended:
            if self._interrupted:
                raise KeyboardInterrupt
            expect(self, self._dispatcher.running + self._dispatcher.room)
            engine.advance()
        return outcome

    @property
    def report(self) -> str:
        """In which mode it runs and why; what `limit="auto"` has found so far and what held it."""
        return self._options.report(self.mode, self.reason, self._dispatcher)

    @property
    def running(self) -> int:
        """How many items run now."""
        return self._dispatcher.running

    def stop(self) -> None:
        """Starts nothing more; what runs goes on to its end, and its outcomes come.

        What waits to be tried again, or for its group, fails with `Stopped`. May be called in the
        handler of a signal. After it, what ends the fan-out does not wait for threads.
        """
        self._stopped = True
        self._dispatcher.stop(Stopped("not run: the fan-out was stopped before"))
        if self._engine is not None:
            self._engine.wake()

    def interrupt(self) -> None:
        """As `stop`, and the next outcome is a KeyboardInterrupt, which cancels what runs.

        In the handler of a signal it is raised where it does no harm: not inside of an item. So
        items that keep an event loop from running also keep it from being raised.
        """
        self._interrupted = True
        self.stop()

    def close(self) -> None:
        """Starts nothing more and ends what runs: cancels coroutines, waits for threads.

        Outcomes that were not taken can still be. Called by its own function or input, it ends
        nothing that runs, but starts nothing more.
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

    def raise_for_failures(self) -> "list[_Value]":
        """Runs what has not run; the values of the outcomes that nobody has taken, in order.

        Raises an ExceptionGroup of everything that has failed, also of what was taken before. Of
        more than 10,000 failures it has the first, and tells the number of all.
        """
        taken = [] if self._exhausted else list(self)
        if self._failures:
            raise _group(self._failures, self._failed, self._taken)
        return [outcome.unwrap() for outcome in taken]


def raise_for_failures(outcomes: "Iterable[Outcome[object, _Value]]") -> "list[_Value]":
    """The values, in order, or an ExceptionGroup of everything that has failed.

    For outcomes that were kept; as the method of `Outcomes` for those that are still to come.
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
    mode: str, fn: "Callable[[Any], Any]", dispatcher: "Dispatcher", options: Options
) -> "Engine":
    timeout = options.timeout
    if options.engine is not None:
        from ungil.fanout import _engine as engines

        return engines.Engine(fn, mode, dispatcher, options)
    # Each is imported only when it is needed: asyncio alone takes longer than 10,000 tasks.
    if mode == "asyncio":
        from ungil.fanout._asyncio import Loop

        return Loop(fn, dispatcher, timeout, options.limit)
    if mode == "lean":
        from ungil.fanout._lean import Loop

        return Loop(fn, dispatcher, timeout)
    if mode == "green":
        from ungil.fanout._green import Green

        return Green(fn, dispatcher, timeout)
    from ungil.fanout._threads import Threads

    return Threads(fn, dispatcher, timeout)
