"""Which worker gets which items, with workers that are none: no process, no time."""

from __future__ import annotations

import itertools
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ungil._native import Dispatcher, Outcome
from ungil.errors import EngineError, WorkerDied
from ungil.fanout import Stopped, _shards
from ungil.fanout._shards import Shards, shares
from ungil.fanout._worker import ERROR, GIVEN_BACK, VALUE, Batch


class Worker:
    """What a worker was given, and what it has not yet said."""

    def __init__(self, limit: int | str) -> None:
        self.limit = limit
        self.batches: list[Batch] = []
        self.waiting: list[tuple[int, Any]] = []
        self.begun = 0
        self.stops = 0

    def reply(self, count: int = 0, how: int = VALUE) -> tuple[int, list[tuple[int, int, bytes]]]:
        """The first `count` of its items have ended, and all others have begun."""
        ended, self.waiting = self.waiting[:count], self.waiting[count:]
        results = [item if how == VALUE else (OSError(item), None) for _, item in ended]
        blobs = map(pickle.dumps, results)
        return self.begun, [
            (number, how, blob) for (number, _), blob in zip(ended, blobs, strict=True)
        ]


class Pool:
    """Workers that do nothing by themselves."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.opened: list[Worker] = []

    dumps = staticmethod(pickle.dumps)
    loads = staticmethod(pickle.loads)

    def open(self, limit: int | str) -> Worker:
        self.opened.append(Worker(limit))
        return self.opened[-1]

    def give(self, worker: Worker, batch: Batch | None) -> None:
        if batch is None:
            worker.stops += 1
            return
        worker.batches.append(batch)
        worker.waiting += [(number, pickle.loads(blob)) for number, blob in batch]
        worker.begun += len(batch)

    def close(self) -> None:
        pass


class World:
    """A fan-out over such workers."""

    def __init__(self, items: Any, workers: int = 2, retries: int = 0) -> None:
        self.pool = Pool(workers)
        self.dispatcher = Dispatcher(
            iter(items), limit=100_000, window=100_000, in_order=True, retries=retries
        )
        self.shards = Shards(self.pool, self.dispatcher, "auto")
        self.shards.fill()

    def say(self, worker: Worker, news: Any) -> None:
        self.shards.handle(worker, news)
        self.shards.fill()

    def outcomes(self) -> list[Outcome]:
        return list(iter(self.dispatcher.take, None))

    def start(self) -> list[Worker]:
        """All workers that were opened, ready."""
        for worker in self.pool.opened:
            self.say(worker, worker.reply())
        return self.pool.opened


def test_the_shares_of_a_limit_are_whole_and_add_up_to_it() -> None:
    for limit, workers in itertools.product(range(1, 40), range(1, 9)):
        parts = [int(share) for share in shares(limit, workers)]
        assert sum(parts) == limit
        assert min(parts) >= 1
        assert max(parts) - min(parts) <= 1
        assert len(parts) <= workers
    assert shares("auto", 3) == ["auto"] * 3


def test_few_items_are_spread_over_all_workers_even_if_one_is_ready_first() -> None:
    world = World(range(6))
    first, second = world.pool.opened
    world.say(first, first.reply())
    world.say(first, first.reply())
    assert [item for _, item in first.waiting] == [0, 1, 2]
    world.say(second, second.reply())
    assert [item for _, item in second.waiting] == [3, 4, 5]


def test_a_worker_that_never_comes_gets_nothing_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(range(6))
    first, _ = world.pool.opened
    world.say(first, first.reply())
    assert len(first.waiting) == 3
    assert world.shards.pause is not None
    monkeypatch.setattr(_shards, "_PATIENCE_SECONDS", 0.0)
    assert world.shards.pause is None
    while len(first.waiting) < 6:
        before = len(first.waiting)
        world.say(first, first.reply())
        assert len(first.waiting) > before


def test_a_worker_that_is_not_needed_is_not_waited_for() -> None:
    world = World(range(1), workers=2)
    [worker] = world.start()
    assert len(worker.waiting) == 1
    world.shards.handle(worker, WorkerDied("died"))
    assert world.shards.pause is not None
    assert world.shards.pause < 60


def test_no_more_workers_start_than_there_are_items() -> None:
    assert len(World(range(3), workers=8).pool.opened) == 3


def test_batches_grow_while_workers_wait_for_them() -> None:
    world = World(itertools.count(), workers=1)
    [worker] = world.start()
    for _ in range(5):
        world.say(worker, worker.reply())
    assert [len(batch) for batch in worker.batches] == [4, 16, 64, 256, 1024, 1024]


def test_batches_shrink_while_items_wait_for_workers() -> None:
    world = World(itertools.count(), workers=1)
    [worker] = world.start()
    for _ in range(5):
        world.say(worker, worker.reply())
    begun = worker.begun - 1024
    for _ in range(4000):
        begun += 1
        [(number, item)] = worker.waiting[:1]
        del worker.waiting[0]
        world.say(worker, (begun, [(number, VALUE, pickle.dumps(item))]))
    # One at a time is used up between two batches.
    assert worker.begun - begun <= 4


def test_a_retry_goes_through_the_dispatcher() -> None:
    world = World(range(1), workers=1, retries=1)
    [worker] = world.start()
    world.say(worker, worker.reply(1, ERROR))
    assert [item for _, item in worker.waiting] == [0]
    world.say(worker, worker.reply(1))
    [outcome] = world.outcomes()
    assert (outcome.value, outcome.attempts) == (0, 2)


def test_what_a_dead_worker_still_says_is_ignored() -> None:
    world = World(range(2), workers=1)
    [worker] = world.start()
    late = worker.reply(1)
    world.say(worker, WorkerDied("died"))
    world.say(worker, late)
    assert world.outcomes() == []


def test_items_of_a_dead_worker_run_apart_from_others() -> None:
    world = World(itertools.count(), workers=1)
    [worker] = world.start()
    had = [item for _, item in worker.waiting]
    world.say(worker, WorkerDied("died"))
    second = world.pool.opened[-1]
    world.say(second, second.reply())
    assert [item for _, item in second.waiting] == had
    world.say(second, second.reply(len(had) - 1))
    assert len(second.waiting) == 1
    world.say(second, second.reply(1))
    assert len(second.waiting) > 1


def test_workers_in_the_midst_of_others_items_make_room_if_nobody_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(itertools.count())
    first, second = world.start()
    world.say(first, WorkerDied("died"))
    world.say(second, second.reply(1))
    assert len(second.waiting) > 4
    monkeypatch.setattr(_shards, "_PATIENCE_SECONDS", 0.0)
    world.say(second, second.reply(1))
    # Now it gets nothing more, and then what the first had.
    world.say(second, second.reply(len(second.waiting)))
    assert [item for _, item in second.waiting] == [item for _, item in first.waiting]


def test_an_error_of_an_engine_ends_everything() -> None:
    world = World(range(100))
    world.start()
    world.say(world.pool.opened[0], EngineError("the scheduler is lost"))
    assert world.dispatcher.ended
    errors: list[BaseException | None] = []
    with pytest.raises(EngineError, match="the scheduler is lost"):
        errors.extend(outcome.exception for outcome in iter(world.dispatcher.take, None))
    assert {str(error) for error in errors} == {"the scheduler is lost"}


def test_what_no_worker_has_begun_comes_back_when_all_is_stopped() -> None:
    world = World(itertools.count(), workers=1)
    [worker] = world.start()
    first, *others = worker.waiting
    world.say(worker, (1, []))
    world.dispatcher.stop(Stopped("stopped"))
    world.shards.stop()
    world.shards.stop()
    assert worker.stops == 1
    world.say(worker, (1, [(number, GIVEN_BACK, b"") for number, _ in others]))
    world.say(worker, (1, [(first[0], VALUE, pickle.dumps("first"))]))
    outcomes = world.outcomes()
    assert world.dispatcher.ended
    assert outcomes[0].value == "first"
    assert len(outcomes) > len(others)
    for outcome in outcomes[1:]:
        assert isinstance(outcome.exception, Stopped)
        assert outcome.attempts == 0


def test_items_of_a_worker_that_dies_after_a_stop_do_not_run_again() -> None:
    world = World(range(2), workers=1)
    [worker] = world.start()
    world.dispatcher.stop(Stopped("stopped"))
    world.shards.stop()
    world.say(worker, WorkerDied("died"))
    assert [type(outcome.exception) for outcome in world.outcomes()] == [WorkerDied] * 2
    assert world.pool.opened == [worker]


def test_what_was_to_run_apart_does_not_run_after_a_stop() -> None:
    world = World(range(2), workers=1)
    [worker] = world.start()
    world.say(worker, WorkerDied("died"))
    world.dispatcher.stop(Stopped("stopped"))
    world.shards.stop()
    told = [(type(it.exception), it.attempts) for it in world.outcomes()]
    assert told == [(Stopped, 1)] * 2


@given(
    killers=st.sets(st.integers(0, 199), max_size=12),
    workers=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    strikes=st.integers(0, 3),
)
def test_whatever_dies_every_item_has_one_outcome_and_only_killers_are_blamed(
    killers: set[int], workers: int, seed: int, strikes: int
) -> None:
    chance = random.Random(seed)
    world = World(range(200), workers)
    dead: set[Worker] = set()
    runs: dict[int, int] = {}
    while not world.dispatcher.ended:
        worker = chance.choice([worker for worker in world.pool.opened if worker not in dead])
        part = worker.waiting[: chance.randint(0, len(worker.waiting))]
        deadly = next((place for place, (_, item) in enumerate(part) if item in killers), None)
        # Something from outside may strike as well, but nobody who runs one item alone.
        struck = strikes > 0 and len(worker.waiting) > 1 and chance.random() < 0.1
        if deadly is not None or struck:
            strikes -= struck and deadly is None
            dead.add(worker)
            for _, item in worker.waiting:
                runs[item] = runs.get(item, 0) + 1
            world.say(worker, WorkerDied("died"))
        else:
            world.say(worker, worker.reply(len(part)))
    outcomes = world.outcomes()
    assert [outcome.index for outcome in outcomes] == list(range(200))
    assert {outcome.index for outcome in outcomes if not outcome.ok} == killers
    assert all(isinstance(outcome.exception, WorkerDied) for outcome in outcomes if not outcome.ok)
    # With others, with what its worker had, in eight parts, again in eight, alone.
    assert max(runs.values(), default=0) <= 6 + 3
