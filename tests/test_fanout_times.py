"""The times of outcomes: seconds since 1970 for people and other machines, durations exact."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

from ungil.fanout import Backoff, Fanout, Outcome, fanout, sleep

# A number of the size of 1.7e9 is no finer.
ROUNDING_S = 1e-6


async def naps(seconds: float) -> float:
    """How long it has slept, by the clock that never goes back."""
    begun = time.monotonic()
    await sleep(seconds)
    return time.monotonic() - begun


def sleeps(seconds: float) -> float:
    begun = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - begun


def test_times_of_a_stream_and_of_workers_are_the_same() -> None:
    async def program() -> list[Outcome[float, float]]:
        async with Fanout() as f:
            return [outcome async for outcome in f.stream(naps, [0.01])]

    before = time.time() - ROUNDING_S
    [streamed] = asyncio.run(program())
    [worked] = fanout(abs, [-1], engine="processes:1")
    after = time.time() + ROUNDING_S
    for outcome in (streamed, worked):
        assert before <= outcome.started <= outcome.finished <= after


def test_an_outcome_that_goes_to_another_process_keeps_its_times() -> None:
    [outcome] = fanout(sleeps, [0.01])
    again: Outcome[float, float] = pickle.loads(pickle.dumps(outcome))
    for name in ("queued", "started", "finished", "seconds"):
        assert getattr(again, name) == getattr(outcome, name)
    # There the other clock need not be the same, as on another machine.
    code = (
        "import pickle, sys; outcome = pickle.load(sys.stdin.buffer); "
        "print(repr((outcome.started, outcome.finished, outcome.seconds)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(outcome),
        capture_output=True,
        check=True,
    )
    assert eval(told.stdout) == (outcome.started, outcome.finished, outcome.seconds)


def test_the_times_are_those_of_the_last_attempt() -> None:
    begun: list[float] = []

    def third_time(_item: int) -> None:
        begun.append(time.time())
        if len(begun) < 3:
            raise OSError("again")

    [outcome] = fanout(third_time, [1], retries=2, backoff=Backoff(0.01))
    assert begun[1] < outcome.started <= begun[2] + ROUNDING_S
    assert outcome.queued <= begun[0] + ROUNDING_S


def test_an_item_that_never_ran_has_the_time_when_it_was_given_up() -> None:
    stopped = threading.Event()

    def waits(item: int) -> None:
        if item < 2:
            stopped.wait()

    def is_of_the_two(item: int) -> bool:
        return item < 2

    before = time.time() - ROUNDING_S
    # The first keeps the second from running, which is of its group; the third ends.
    outcomes = fanout(waits, range(3), limit=2, per_group=1, group=is_of_the_two, in_order=False)
    assert next(outcomes).index == 2
    outcomes.stop()
    stopped.set()
    rest = sorted(outcomes, key=lambda outcome: outcome.index)
    assert [outcome.attempts for outcome in rest] == [1, 0]
    for outcome in rest:
        assert before <= outcome.started <= outcome.finished <= time.time() + ROUNDING_S


def test_what_an_earlier_run_has_done_has_the_time_when_that_was_found(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    list(fanout(abs, [-1], journal=journal))
    before = time.time() - ROUNDING_S
    [outcome] = fanout(abs, [-1], journal=journal)
    assert outcome.resumed
    assert before <= outcome.started == outcome.finished <= time.time() + ROUNDING_S
    assert outcome.seconds == 0
