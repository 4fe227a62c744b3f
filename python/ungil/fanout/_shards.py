"""Which worker has which items: the caller's half of an engine.

Each worker runs a local fan-out (`_worker.Shard`). It is given items in batches, and keeps so many
before it that it never waits for the next batch, but no more: what waits at one worker cannot run
at another. The dispatcher is the caller's own, so order, groups, rate and retries hold for all
workers together.

When a worker dies, what it had is run again elsewhere, apart from everything else. If that worker
dies as well, one of these items is the reason: they are run in eight parts, one after the other,
and what remains of a part that kills its worker in eight parts again, until an item has killed a
worker alone.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from ungil._native import Dispatcher, Outcome
from ungil.errors import EngineError, NotCarried, WorkerDied
from ungil.fanout._failures import Stopped
from ungil.fanout._worker import ABANDONED, GIVEN_BACK, VALUE, Batch, Reply

# How many items wait at a worker at first; from then on as many as it uses up between two batches.
_FIRST_DEPTH = 4
_MOST_DEPTH = 1024

_PARTS = 8

# So many workers may die in a row, without one item that ended between, before it is given up.
_MOST_DEATHS = 50

# How long items wait for a worker that starts, or is to start in the place of a dead one.
_PATIENCE_SECONDS = 3.0

# What a worker replied, or how it ended: WorkerDied if another one may do better.
News = Reply | BaseException

# How a pool tells it, from whatever thread.
Deliver = Callable[[tuple[object, News]], None]


class Pool(Protocol):
    """An engine: starts workers, and carries bytes to and from them.

    What comes back goes to the `Deliver` that it was made with: (worker, news).
    """

    # How many workers it can run at once.
    workers: int

    def dumps(self, item: Any, /) -> bytes:
        """Anything in bytes."""
        ...

    def loads(self, blob: bytes, /) -> Any:
        """What `dumps` made bytes of."""
        ...

    def open(self, limit: int | str, /) -> object:
        """Starts a worker that runs so many items at once. Its first reply says it is there."""
        ...

    def give(self, worker: Any, batch: Batch | None, /) -> None:
        """News for a worker. If it does not arrive, the worker is as good as dead."""
        ...

    def close(self) -> None:
        """Ends all workers, and comes back when they have ended."""
        ...


class _Place:
    """Where a worker runs, and after its death another one."""

    __slots__ = (
        "apart",
        "begun",
        "depth",
        "drains",
        "filled",
        "given",
        "limit",
        "opened",
        "ready",
        "sent",
        "worker",
    )

    def __init__(self, limit: int | str) -> None:
        self.limit = limit
        self.vacate()

    def vacate(self) -> None:
        """There is no worker."""
        self.worker: object = None
        self.opened = math.inf  # it can be, at any time
        self.ready = False
        self.apart = False  # it has suspects, and must get nothing else
        self.drains = False  # it gets nothing more, to be free for suspects
        self.given: dict[int, Outcome] = {}
        self.sent = 0
        self.begun = 0
        self.depth = _FIRST_DEPTH
        self.filled = False

    @property
    def is_coming(self) -> bool:
        """Whether a worker will soon be ready here."""
        return not self.ready and time.monotonic() < self.opened + _PATIENCE_SECONDS

    @property
    def room(self) -> int:
        """How many more items shall wait here."""
        if not self.ready or self.apart or self.drains:
            return 0
        return max(0, self.depth - (self.sent - self.begun))

    def adapt(self, begun: int) -> None:
        """Half of what waits should be used up until the next batch comes."""
        self.begun = begun
        waiting = self.sent - begun
        if waiting == 0 and self.filled:
            self.depth = min(self.depth * 4, _MOST_DEPTH)
        elif self.depth // 2 < waiting <= self.depth:
            self.depth = max(1, self.depth * 3 // 4)
        self.filled = False


class Shards:
    """The items of one fan-out at the workers of one pool."""

    def __init__(self, pool: Pool, dispatcher: Dispatcher, limit: int | str) -> None:
        self._pool = pool
        self._dispatcher = dispatcher
        self._places = [_Place(share) for share in shares(limit, pool.workers)]
        self._by_worker: dict[object, _Place] = {}
        self._pending: deque[Outcome] = deque()
        self._suspects: deque[list[Outcome]] = deque()
        self._suspected = 0.0  # when there were last new ones
        self._deaths = 0
        self._is_stopped = False
        self._is_over = False

    def add(self, attempt: Outcome) -> None:
        """An item that came from elsewhere than the dispatcher's own input, for the next `fill`."""
        self._pending.append(attempt)

    @property
    def is_full(self) -> bool:
        """Whether another item would have to wait here, at the caller."""
        return len(self._pending) >= self._wanted()

    def fill(self) -> None:
        """Gives the workers what they have room for, and starts those that are needed."""
        try:
            self._run_suspects()
            self._pull()
            self._spread()
            self._open()
        except Exception as error:  # the engine's own
            self.give_up(error)

    def stop(self) -> None:
        """Takes back what no worker has begun: it fails with `Stopped`. What runs goes on.

        Whoever calls has stopped the dispatcher.
        """
        if self._is_stopped or self._is_over:
            return
        self._is_stopped = True
        pending = [*self._pending]
        suspects = [attempt for group in self._suspects for attempt in group]
        self._pending.clear()
        self._suspects.clear()
        for attempt in pending:
            self._give_back(attempt)
        for attempt in suspects:
            self._failed(attempt, Stopped("not run again: the fan-out was stopped before"))
        try:
            for place in self._places:
                if place.ready:
                    self._pool.give(place.worker, None)
        except Exception as error:  # the engine's own
            self.give_up(error)

    @property
    def pause(self) -> float | None:
        """In how many seconds time alone changes something."""
        # While it is full, only a worker's news can let something start.
        pause = None if self.is_full else self._dispatcher.pause
        if not (self._pending or self._suspects):
            return pause
        now = time.monotonic()
        since = [
            place.opened for place in self._places if place.worker is not None and place.is_coming
        ]
        since += [self._suspected] if self._suspects else []
        waits = [at + _PATIENCE_SECONDS - now for at in since]
        # A moment too late is better than one too early, after which nobody would come again.
        waits = [wait + 0.01 for wait in waits if wait > 0]
        return min(waits if pause is None else [*waits, pause], default=None)

    def handle(self, worker: object, news: News) -> None:
        """What the pool has told."""
        place = self._by_worker.get(worker)
        if place is None:
            return  # it was given up
        try:
            if isinstance(news, WorkerDied):
                self._lost(place, news)
            elif isinstance(news, BaseException):
                self.give_up(news)
            else:
                self._replied(place, *news)
        except Exception as error:  # the user's `retry_if`
            self.give_up(error)

    def give_up(self, error: BaseException) -> None:
        """Ends everything; `error` comes to whoever takes the outcomes, after the last of them."""
        if self._is_over:
            return
        self._is_over = True
        failure = error if isinstance(error, EngineError) else EngineError(f"given up: {error}")
        self._dispatcher.stop(failure)
        left = [*self._pending, *(item for group in self._suspects for item in group)]
        for place in self._places:
            left += place.given.values()
            place.given.clear()
        self._pending.clear()
        self._suspects.clear()
        for attempt in left:
            self._dispatcher.failed(attempt, failure)
        self._dispatcher.close(error)

    def _pull(self) -> None:
        pending, dispatcher, wanted = self._pending, self._dispatcher, self._wanted()
        while len(pending) < wanted and (attempt := dispatcher.next()) is not None:
            pending.append(attempt)

    def _wanted(self) -> int:
        # Workers that have yet to start shall find as much as the others have.
        most = max(len(place.given) for place in self._places) + _FIRST_DEPTH
        return sum(most if place.is_coming else place.room for place in self._places)

    def _spread(self) -> None:
        """To each its share: at the end of the input all shall end at the same time."""
        pending = self._pending
        places = [place for place in self._places if place.room]
        if not places or not pending:
            return
        coming = sum(place.is_coming for place in self._places)
        load = len(pending) + sum(len(place.given) for place in places)
        level = -(-load // (len(places) + coming))
        for place in places:
            share = max(0, min(place.room, level - len(place.given), len(pending)))
            self._send(place, [pending.popleft() for _ in range(share)])

    def _open(self) -> None:
        waiting = len(self._pending) + len(self._suspects)
        waiting -= sum(place.worker is not None and not place.ready for place in self._places)
        for place in self._places:
            if waiting <= 0:
                return
            if place.worker is None:
                place.opened = time.monotonic()
                place.worker = self._pool.open(place.limit)
                self._by_worker[place.worker] = place
                waiting -= 1

    def _run_suspects(self) -> None:
        if not self._suspects:
            return
        ready = [place for place in self._places if place.ready]
        for place in ready:
            if self._suspects and not place.given:
                self._send(place, self._suspects.popleft())
                place.apart = bool(place.given)
        # Nobody may come in the place of the dead, and the others always have something to do.
        is_late = time.monotonic() > self._suspected + _PATIENCE_SECONDS
        if is_late and ready and not any(place.apart or place.drains for place in ready):
            min(ready, key=lambda place: len(place.given)).drains = True

    def _send(self, place: _Place, attempts: list[Outcome]) -> None:
        batch: Batch = []
        for attempt in attempts:
            try:
                blob = self._pool.dumps(attempt.item)
            except Exception as error:
                why = f"the item cannot be pickled: {type(error).__qualname__}: {error}"
                self._failed(attempt, NotCarried(why))
            else:
                place.given[place.sent] = attempt
                batch.append((place.sent, blob))
                place.sent += 1
        if batch:
            place.filled = place.sent - place.begun >= place.depth
            self._pool.give(place.worker, batch)

    def _replied(self, place: _Place, begun: int, ended: list[tuple[int, int, bytes]]) -> None:
        place.ready = True
        place.adapt(begun)
        if ended:
            self._deaths = 0
        for number, how, blob in ended:
            attempt = place.given.pop(number)
            if how == GIVEN_BACK:
                self._give_back(attempt)
            else:
                self._end(attempt, how, blob)
        if not place.given:
            place.apart = place.drains = False

    def _end(self, attempt: Outcome, how: int, blob: bytes) -> None:
        try:
            result = self._pool.loads(blob)
            if how != VALUE:
                result, note, cause = result
                if note is not None:
                    result.add_note(note)
                if cause is not None:
                    with suppress(Exception):  # it would only have been one more sentence
                        result.__cause__ = self._pool.loads(cause)
        except Exception as error:
            what = "what the function returned" if how == VALUE else "the exception"
            why = f"{what} cannot be unpickled here: {type(error).__qualname__}: {error}"
            self._failed(attempt, NotCarried(why))
            return
        if how == VALUE:
            self._follow(self._dispatcher.succeeded(attempt, result))
        else:
            self._failed(attempt, result, abandoned=how == ABANDONED)

    def _failed(self, attempt: Outcome, error: BaseException, *, abandoned: bool = False) -> None:
        try:
            following = self._dispatcher.failed(attempt, error, abandoned=abandoned)
        except Exception as raised:  # by the user's `retry_if`, which is asked about no EngineError
            self._dispatcher.failed(attempt, EngineError(f"retry_if raised {raised!r}"))
            raise
        self._follow(following)

    def _give_back(self, attempt: Outcome) -> None:
        stopped = Stopped("not run: the fan-out was stopped before")
        self._follow(self._dispatcher.given_back(attempt, stopped))

    def _follow(self, attempt: Outcome | None) -> None:
        if attempt is not None:
            self.add(attempt)

    def _lost(self, place: _Place, why: WorkerDied) -> None:
        suspects, apart = list(place.given.values()), place.apart
        del self._by_worker[place.worker]
        place.vacate()
        self._deaths += 1
        if self._is_stopped or (len(suspects) == 1 and apart):
            did = "ran" if apart else "had"
            error = WorkerDied(f"the worker died while it {did} this item: it {why}")
            for attempt in suspects:
                self._failed(attempt, error)
        elif suspects:
            self._suspected = time.monotonic()
            size = -(-len(suspects) // _PARTS) if apart else len(suspects)
            for start in range(0, len(suspects), size):
                self._suspects.append(suspects[start : start + size])
        if self._deaths > _MOST_DEATHS:
            what = f"{self._deaths} workers died and no item ended in between; the last one"
            self.give_up(EngineError(f"{what} {why}"))


def shares(limit: int | str, workers: int) -> list[int | str]:
    """The limit of each worker, so that all together keep it. Finding it out is each one's own."""
    if isinstance(limit, str):
        return [limit] * workers
    workers = min(limit, workers)
    return [limit // workers + (place < limit % workers) for place in range(workers)]
