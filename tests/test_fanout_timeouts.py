"""Timeouts end what they should: this attempt, and neither the next one nor another item."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
from suite import PATIENCE_S, PROGRAMS, run_python

from ungil.fanout import Backoff, _thread_slots, fanout


def test_an_attempt_in_a_thread_that_was_given_up_does_not_end_the_next_one() -> None:
    first: list[threading.Thread] = []
    second_runs = threading.Event()

    def work(_item: int) -> str:
        if not first:
            first.append(threading.current_thread())
            assert second_runs.wait(PATIENCE_S)
            return "first"
        second_runs.set()
        first[0].join()
        return "second"

    [outcome] = fanout(work, [0], timeout=1, retries=3, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == ("second", 2, False)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_coroutine_that_was_given_up_does_not_end_the_next_attempt(
    loop: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    second_runs = False
    first_ended = False

    async def first() -> str:
        nonlocal first_ended
        while not second_runs:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue  # it does not want to end
        first_ended = True
        if ends == "raises":
            raise ValueError("first")
        return "first"

    tries = 0

    async def work(_item: int) -> str:
        nonlocal second_runs, tries
        tries += 1
        if tries == 1:
            return await first()
        second_runs = True
        while not first_ended:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        return "second"

    [outcome] = fanout(work, [0], mode="asyncio", timeout=1, retries=3, backoff=Backoff(0))
    assert (outcome.value, outcome.attempts, outcome.abandoned) == ("second", 2, False)


def test_what_a_coroutine_raises_because_it_was_cancelled_is_the_cause_of_its_time_out() -> None:
    async def work(_item: int) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ValueError("not so soon") from None

    [outcome] = fanout(work, [0], mode="asyncio", timeout=0.05)
    assert isinstance(outcome.exception, TimeoutError)
    assert isinstance(outcome.exception.__cause__, ValueError)


@pytest.mark.parametrize("how", ["lean", "asyncio", "uvloop", "green"])
def test_who_only_waits_for_a_loop_that_comes_late_is_in_time(how: str) -> None:
    ended = run_python(PROGRAMS / "fanout_late_loop.py", how)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_a_thread_takes_to_start_is_not_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    slots: Any = _thread_slots._Slot  # pyright: ignore[reportPrivateUsage]
    run = slots.run

    def late(slot: Any) -> None:
        # When the time of the item that hangs is over, this one has not begun.
        if slot.attempt is not None and slot.attempt.item == "late":
            release.wait()
        run(slot)

    monkeypatch.setattr(slots, "run", late)

    def work(item: str) -> str:
        if item == "hangs":
            over.wait()
        return item

    over = threading.Event()
    outcomes = fanout(work, ["hangs", "late"], mode="threads", timeout=1, limit=2)
    hung = next(outcomes)
    assert hung.abandoned
    release.set()
    (late_one,) = outcomes
    over.set()
    assert late_one.unwrap() == "late"


class Stopping:
    """The clock of a machine that can stand still, and who looks at it."""

    def __init__(self) -> None:
        self.looked = threading.Event()
        self._stood_still = 0.0

    def monotonic(self) -> float:
        if threading.current_thread() is threading.main_thread():
            self.looked.set()
        return time.monotonic() + self._stood_still

    def stand_still(self, seconds: float) -> None:
        self._wait_for_a_look()
        self._stood_still += seconds
        self._wait_for_a_look()

    def _wait_for_a_look(self) -> None:
        self.looked.clear()
        self.looked.wait()

    sleep = staticmethod(time.sleep)
    thread_time_ns = staticmethod(time.thread_time_ns)


def test_a_thread_is_not_given_up_because_the_machine_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Stopping()
    monkeypatch.setattr(_thread_slots, "time", clock)

    def work(_item: str) -> str:
        clock.stand_still(7.0)
        return "done"

    (outcome,) = fanout(work, ["item"], mode="threads", timeout=5.0)
    assert outcome.unwrap() == "done"


def test_a_thread_that_hangs_is_given_up_on_a_machine_that_stands_still_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Faltering(Stopping):
        def monotonic(self) -> float:
            self._stood_still += 0.5
            return super().monotonic()

    over = threading.Event()
    monkeypatch.setattr(_thread_slots, "time", Faltering())
    outcomes = fanout(lambda _item: over.wait(), ["item"], mode="threads", timeout=5.0)
    hung = next(outcomes)
    over.set()
    assert hung.abandoned


def test_a_thread_is_not_given_up_while_it_only_waits_for_the_gil() -> None:
    import ctypes

    # With the GIL, unlike CDLL: nobody else goes on meanwhile.
    usleep = ctypes.PyDLL(None).usleep

    def work(item: str) -> str:
        if item == "keeps the GIL":
            begun.wait()
            usleep(2_200_000)
        else:
            begun.set()
            time.sleep(0.001)
        return item

    begun = threading.Event()
    items = ["keeps the GIL", *map(str, range(50))]
    outcomes = list(fanout(work, items, mode="threads", timeout=2.0, limit=51))
    assert all(outcome.ok for outcome in outcomes[1:]), outcomes


def test_a_thread_that_computes_is_given_up_when_its_time_is_over() -> None:
    over = threading.Event()

    def work(_item: str) -> None:
        while not over.is_set():
            pass

    outcomes = fanout(work, ["item"], mode="threads", timeout=0.2)
    computing = next(outcomes)
    over.set()
    assert computing.abandoned
